import type { ErasureReceipt, ErasureStatus } from 'nestjs-debate-space';
import { moment } from '../pages/in-words.js';
import { erasureView, type ErasureView } from './erasure-view.js';

/**
 * What `views/receipt.eta` shows: one erasure of one user, and its receipt when it is finished. Nothing personal, and no
 * keyed hash: with it, anyone could link the receipts of a user.
 */
export interface ReceiptView extends ErasureView {
  readonly receipt?: {
    readonly doneAt: string;
    readonly outcome: string;
    readonly attempts: string;
    readonly loggedOut: string;
  };
}

const OUTCOMES: Readonly<Record<ErasureReceipt['outcome'], string>> = {
  erased: 'erased',
  'not-found': 'the debate space did not know this user (any more)',
  vetoed: 'not erased',
  canceled: 'given up; it may have been erased all the same',
};

export function receiptView(
  status: ErasureStatus,
  receipt: ErasureReceipt | undefined,
  trouble?: string,
): ReceiptView {
  const view = erasureView(status, trouble);
  if (receipt === undefined) return view;
  const { doneAt, outcome, reason, status: answer, attempts, loggedOut } = receipt;
  const details = [reason, answer === undefined ? undefined : `answer ${answer}`].filter(Boolean).join('; ');
  return {
    ...view,
    sentence: outcome === 'vetoed' ? 'Finished, and not erased.' : view.sentence,
    receipt: {
      doneAt: moment(doneAt),
      outcome: details === '' ? OUTCOMES[outcome] : `${OUTCOMES[outcome]} (${details})`,
      attempts: String(attempts),
      loggedOut: loggedOut ? 'yes' : 'no',
    },
  };
}
