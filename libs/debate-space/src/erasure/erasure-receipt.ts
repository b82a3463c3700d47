import * as v from 'valibot';
import type { Keyring } from '../secrets/keyring.js';
import { erasureId, type Erasure, type Job } from '../storage/storage.js';
import type { ErasureReceipt } from './erasure.js';

const MARK_LENGTH = 22;

/** What a receipt says. It is kept with the job, because its reference may be requested again later, by somebody else. */
const RECEIPT = v.object({
  mode: v.picklist(['anonymize', 'delete']),
  requestedBy: v.optional(v.string()),
  requestedAt: v.number(),
  doneAt: v.number(),
  attempts: v.number(),
  outcome: v.picklist(['erased', 'not-found', 'vetoed', 'canceled']),
  status: v.optional(v.number()),
  loggedOut: v.boolean(),
  reason: v.optional(v.string()),
  uncertain: v.optional(v.literal(true)),
});
const RECEIPT_JSON = v.pipe(v.string(), v.parseJson(), RECEIPT);

/** The text of a receipt, with the mark that vouches for it in front. */
export function receiptText(
  keyring: Keyring,
  { id, subject }: Pick<Job, 'id' | 'subject'>,
  receipt: v.InferInput<typeof RECEIPT>,
): string {
  const text = JSON.stringify(receipt);
  return `${keyring.mark('receipt', id, subject, text)}${text}`;
}

/** Reads a receipt. Without a mark that fits it is shown as `unverified`, as the row has it. */
export function receiptOf(keyring: Keyring, { job, reference: of }: Erasure): ErasureReceipt {
  const { id, subject } = job;
  const [mark, text] = [job.details.slice(0, MARK_LENGTH), job.details.slice(MARK_LENGTH)];
  const isGenuine =
    id === erasureId(of.reference, subject) && keyring.isMarked(mark, 'receipt', id, subject, text);
  const { success, output } = v.safeParse(RECEIPT_JSON, text);
  if (!isGenuine || !success) {
    const { reference, mode, requestedBy, requestedAt } = of;
    return {
      reference,
      mode,
      ...(requestedBy !== undefined && { requestedBy }),
      uidHash: subject,
      requestedAt: new Date(requestedAt),
      doneAt: new Date(job.endedAt ?? 0),
      attempts: job.attempts,
      outcome: 'unverified',
      loggedOut: false,
    };
  }
  const { mode, requestedBy, requestedAt, doneAt, attempts, outcome, status, loggedOut, reason, uncertain } =
    output;
  return {
    reference: of.reference,
    mode,
    ...(requestedBy !== undefined && { requestedBy }),
    uidHash: subject,
    requestedAt: new Date(requestedAt),
    doneAt: new Date(doneAt),
    attempts,
    outcome,
    ...(status !== undefined && { status }),
    loggedOut,
    ...(reason !== undefined && { reason }),
    ...(uncertain && { uncertain }),
  };
}
