import type { ErasureEnd } from './claimed-erasure.js';
import type { Draft } from './draft.js';
import type { ErasureBatch } from './erasure-batch.js';
import type { ErasureEntry } from './erasure-entry.js';
import { receiptKey, userKey } from './erasure-keys.js';
import type { StoredReceipt } from './stored-erasure.js';

const COUNTED = {
  erased: 'done',
  'not-found': 'notFound',
  vetoed: 'vetoed',
  cancelled: 'cancelled',
} as const;

/** One user's erasure is over for one of its references: it leaves a receipt there. The batch is still to be saved. */
export function settleReference(
  draft: Draft,
  entry: ErasureEntry,
  { reference, stored }: ErasureBatch,
  end: ErasureEnd,
  now: number,
): void {
  const { uidHash } = entry;
  const { parked, attempts, unknown } = entry.stored;
  const isDone = end.outcome === 'erased' || end.outcome === 'not-found';
  const receipt: StoredReceipt = {
    askedAt: stored.askedAt,
    doneAt: now,
    attempts,
    ...end,
    ...(unknown && !isDone ? { uncertain: true } : {}),
  };
  if (parked) stored.failed -= 1;
  stored[COUNTED[end.outcome]] += 1;
  draft.put(receiptKey(reference, uidHash), receipt);
  draft.put(userKey(uidHash, reference), '');
  entry.leave(reference);
}
