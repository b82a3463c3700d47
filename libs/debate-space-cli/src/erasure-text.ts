import type { ErasureReceipt, ErasureStatus } from 'nestjs-debate-space';
import { date, shown, table } from './text.js';

/** A reference with all its counts. */
export function statusText(status: ErasureStatus): string {
  const { reference, mode, requestedBy, state, complete, askedAt, finishedAt } = status;
  const rows: [string, string | number | undefined][] = [
    ['reference', shown(reference)],
    ['mode', mode],
    ['requested by', requestedBy === undefined ? undefined : shown(requestedBy)],
    ['state', complete ? state : `${state}; the list was not read to its end, nothing is carried out before`],
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
export function statusLine({
  reference,
  mode,
  state,
  askedAt,
  total,
  waiting,
  failed,
}: ErasureStatus): string {
  const counts = `${total - waiting} of ${total}${failed > 0 ? `, ${failed} failed` : ''}`;
  return [date(askedAt), mode.padEnd(9), state.padEnd(9), counts, shown(reference)].join('  ');
}

/** One line of a list; with nothing personal in it. */
export function receiptLine(receipt: ErasureReceipt): string {
  const { doneAt, mode, outcome, status, attempts, uidHash, reference, reason } = receipt;
  const parts = [
    date(doneAt),
    mode.padEnd(9),
    outcome.padEnd(12),
    String(status ?? '–').padEnd(3),
    `${attempts}×`,
  ];
  return [...parts, uidHash, shown(reference), shown(reason)].join('  ').trimEnd();
}
