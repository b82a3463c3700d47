import type { ErasureReceipt, ErasureStatus, RetryingErasure } from 'nestjs-debate-space';
import { counted, date, duration, shown, table, type Output } from './output.js';
import { Failure } from './failure.js';

const STATES: Readonly<Record<ErasureStatus['state'], string>> = {
  waiting: 'waiting',
  running: 'running', // whether a process works on it at the moment is not stored
  paused: 'paused',
  overdue: 'overdue',
  done: 'finished',
  canceled: 'canceled',
};
/** Beside it no other state says anything. */
const UNREAD = 'waiting for the rest of the list: nobody is erased before it is read to its end';
const OUTCOMES: Readonly<Record<ErasureReceipt['outcome'], string>> = {
  erased: 'erased',
  'not-found': 'not found',
  vetoed: 'vetoed',
  canceled: 'canceled',
};

/** How many users the work has ended for: nobody is left out by a cancellation or a failure. */
export function finishedOf({ done, notFound, vetoed }: ErasureStatus): number {
  return done + notFound + vetoed;
}

/** A reference with its counts; of how users were left out, only what happened. */
export function statusText(status: ErasureStatus): string {
  const { reference, mode, requestedBy, state, complete, requestedAt, finishedAt } = status;
  const rows: [string, string | number | undefined][] = [
    ['reference', shown(reference)],
    ['mode', mode],
    ['requested by', requestedBy === undefined ? undefined : shown(requestedBy)],
    ['state', complete || finishedAt ? STATES[state] : UNREAD],
    ['requested', date(requestedAt)],
    ['finished', finishedAt && date(finishedAt)],
    ['total', status.total],
    ['done', status.done],
    ['not found', status.notFound || undefined],
    ['vetoed', status.vetoed || undefined],
    ['canceled', status.canceled || undefined],
    ['failed', status.failed || undefined],
    ['waiting', status.waiting],
    ['last failure', status.retrying && retryingText(status.retrying)],
  ];
  return table(rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
}

/** Why an attempt failed, and when the next one is due. */
export function retryingText({ cause, nextAttemptAt }: RetryingErasure): string {
  const leftMs = nextAttemptAt && nextAttemptAt.getTime() - Date.now();
  const next =
    leftMs === undefined || leftMs <= 0 ? 'the next attempt is due' : `next attempt in ${duration(leftMs)}`;
  return `${shown(cause)}; ${next}`;
}

/** What becomes of the users who are not erased yet, when a command ends that has only watched. */
export function watchedText({ reference, state, complete, waiting }: ErasureStatus): string {
  const left = `${counted(waiting, 'user')} not erased yet.`;
  const command = (name: string) => `debate-space erasures ${name} ${shown(reference)}`;
  if (!complete) return `${left} The list was not read to its end: send it again, or: ${command('cancel')}`;
  if (state === 'paused') return `${left} They are paused; to go on: ${command('resume')}`;
  return [
    `${left} This command only watched: your app goes on erasing them.`,
    `To stop that: ${command('pause')} (or cancel).`,
    `To watch again: ${command('status')} --watch`,
  ].join(' ');
}

export const STATUS_COLUMNS = listed(['REQUESTED', 'MODE', 'STATE', 'FINISHED'], 'REFERENCE');
export const RECEIPT_COLUMNS = listed(
  ['DONE', 'MODE', 'OUTCOME', 'STATUS'],
  'TRIES',
  'UID (HASH)'.padEnd(22),
  'REFERENCE',
  'REASON',
);

/** The first columns of a list are aligned. */
function listed(aligned: readonly string[], ...rest: readonly string[]): string {
  const widths = [20, 9, 12, 9];
  return [...aligned.map((cell, n) => cell.padEnd(widths[n] ?? 0)), ...rest].join('  ').trimEnd();
}

/** One line of a list. */
export function statusLine(status: ErasureStatus): string {
  const { reference, mode, state, requestedAt, total, failed, canceled } = status;
  const rest = `${failed > 0 ? `, ${failed} failed` : ''}${canceled > 0 ? `, ${canceled} canceled` : ''}`;
  const counts = `${finishedOf(status)} of ${total}${rest}`;
  return listed([date(requestedAt), mode, STATES[state], counts], shown(reference));
}

/** One line of a list; with nothing personal in it. */
export function receiptLine(receipt: ErasureReceipt): string {
  const { doneAt, mode, outcome, status, attempts, uidHash, reference, reason } = receipt;
  const aligned = [date(doneAt), mode, OUTCOMES[outcome], String(status ?? '–')];
  return listed(aligned, `${attempts}×`.padEnd(5), uidHash, shown(reference), shown(reason));
}

/**
 * Says how many users of a reference are not erased although its work ended, and why.
 * @throws {Failure} unless some were erased, and all others were not found
 */
export function requireErased(
  { reference, done, notFound, failed, vetoed, canceled }: ErasureStatus,
  output: Pick<Output, 'note'>,
): void {
  if (failed > 0) {
    throw new Failure(
      'unfinished',
      `${counted(failed, 'user')} could not be erased; see the log, fix the cause, then: debate-space erasures retry ${reference}`,
    );
  }
  const notErased = [
    ...(vetoed > 0 ? [`${counted(vetoed, 'user')} vetoed by erasure.beforeErase`] : []),
    ...(canceled > 0 ? [`${counted(canceled, 'user')} canceled`] : []),
    ...(notFound > 0 ? [`${counted(notFound, 'user')} not found`] : []),
  ];
  const text = `Not erased: ${notErased.join(', ')}.`;
  if (vetoed > 0 || canceled > 0) throw new Failure(vetoed > 0 ? 'vetoed' : 'canceled', text);
  if (notFound > 0 && done === 0) throw nobodyFound('Nobody was erased');
  if (notFound > 0) output.note(`${text} --dry-run names the rows.`);
}

/** @param result what a list came to of which the service knows no user */
export function nobodyFound(result: string): Failure {
  return new Failure(
    'notFound',
    `${result}: the service knows none of the users`,
    'check the uids, and the column; who is erased already is not found again.',
  );
}
