import type { ErasureMode, ErasureReceipt, ErasureStatus } from 'nestjs-debate-space';
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
  'not-found': 'not found',
  vetoed: 'not erased',
  canceled: 'canceled',
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
    sentence: sentence(status.mode, receipt),
    receipt: {
      doneAt: moment(doneAt),
      outcome: details === '' ? OUTCOMES[outcome] : `${OUTCOMES[outcome]} (${details})`,
      attempts: String(attempts),
      loggedOut: loggedOut ? 'yes' : 'no',
    },
  };
}

/** The outcome, for the person who requested the erasure. */
function sentence(mode: ErasureMode, { outcome, doneAt, reason }: ErasureReceipt): string {
  const erased = mode === 'anonymize' ? 'anonymized' : 'deleted';
  if (outcome === 'erased') return `Your data was ${erased} on ${moment(doneAt)}.`;
  if (outcome === 'not-found') return `The debate space had no data about you on ${moment(doneAt)}.`;
  if (outcome === 'vetoed') return `Your data was not ${erased}${reason === undefined ? '' : `: ${reason}`}.`;
  return 'Your request was canceled. Your data may have been erased before the cancellation.';
}
