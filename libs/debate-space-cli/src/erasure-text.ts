import type { ErasureReceipt, ErasureStatus, UnreadableErasure } from 'nestjs-debate-space';
import { date, shown, table } from './text.js';

const STATES: Readonly<Record<ErasureStatus['state'], string>> = {
  waiting: 'waiting',
  running: 'begun', // whether a process works on it at the moment is not stored
  paused: 'paused',
  overdue: 'overdue',
  done: 'finished',
  canceled: 'canceled',
};
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

/** A reference with all its counts. */
export function statusText(status: ErasureStatus): string {
  const { reference, mode, requestedBy, state, complete, askedAt, finishedAt } = status;
  const rows: [string, string | number | undefined][] = [
    ['reference', shown(reference)],
    ['mode', mode],
    ['requested by', requestedBy === undefined ? undefined : shown(requestedBy)],
    [
      'state',
      complete
        ? STATES[state]
        : `${STATES[state]}; the list was not read to its end, nothing is carried out before`,
    ],
    ['asked', date(askedAt)],
    ['finished', finishedAt && date(finishedAt)],
    ['total', status.total],
    ['done', status.done],
    ['already gone', status.notFound],
    ['vetoed', status.vetoed],
    ['canceled', status.canceled],
    ['failed', status.failed],
    ['waiting', status.waiting],
  ];
  return table(rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
}

/** One line of a list. */
export function statusLine(status: ErasureStatus | UnreadableErasure): string {
  if (status.state === 'unreadable')
    return [date(status.askedAt), '–'.padEnd(9), status.state, status.cause, shown(status.reference)].join(
      '  ',
    );
  const { reference, mode, state, askedAt, total, failed, canceled } = status;
  const rest = `${failed > 0 ? `, ${failed} failed` : ''}${canceled > 0 ? `, ${canceled} canceled` : ''}`;
  const counts = `${finishedOf(status)} of ${total}${rest}`;
  return [date(askedAt), mode.padEnd(9), STATES[state].padEnd(9), counts, shown(reference)].join('  ');
}

/** One line of a list; with nothing personal in it. */
export function receiptLine(receipt: ErasureReceipt): string {
  const { doneAt, mode, outcome, status, attempts, uidHash, reference, reason } = receipt;
  const parts = [
    date(doneAt),
    mode.padEnd(9),
    OUTCOMES[outcome].padEnd(12),
    String(status ?? '–').padEnd(3),
    `${attempts}×`,
  ];
  return [...parts, uidHash, shown(reference), shown(reason)].join('  ').trimEnd();
}
