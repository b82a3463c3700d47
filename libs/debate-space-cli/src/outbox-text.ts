import type { LogoutHistoryEntry, OutboxStats, ParkedLogout } from 'nestjs-debate-space';
import { reasonText } from './reason-text.js';
import { date, duration, shown, table } from './text.js';
import { textInVariables } from './variables.js';

export function statsText({ engine, pending, parked, oldestPendingMs }: OutboxStats): string {
  const oldest = oldestPendingMs === undefined ? '' : `, the oldest for ${duration(oldestPendingMs)}`;
  return table([
    ['engine', engine],
    ['pending', `${pending}${oldest}`],
    ['parked', String(parked)],
  ]);
}

/** With a heading, and below each logout what to do. */
export function parkedText(logouts: readonly ParkedLogout[]): string {
  const rows = logouts.map(({ id, uid, reason, endedAt, parkedAt, attempts, cause }) => [
    id,
    shown(uid),
    date(endedAt),
    date(parkedAt),
    String(attempts),
    cause,
    reasonText[reason],
  ]);
  const headings = ['ID', 'UID', 'ENDED', 'PARKED', 'TRIES', 'CAUSE', 'REASON'];
  return withHints(table([headings, ...rows]), logouts);
}

export function historyText(logouts: readonly LogoutHistoryEntry[]): string {
  const rows = logouts.map(({ id, state, endedAt, attempts, cause = '–', dueAt, finishedAt, reason }) => [
    id,
    state,
    date(endedAt),
    finishedAt ? date(finishedAt) : dueAt ? `due ${date(dueAt)}` : '–',
    String(attempts),
    cause,
    reasonText[reason],
  ]);
  const headings = ['ID', 'STATE', 'ENDED', 'FINISHED', 'TRIES', 'CAUSE', 'REASON'];
  return withHints(table([headings, ...rows]), logouts);
}

/** @param lines the first one is the heading */
function withHints(lines: string, logouts: readonly { readonly hint?: string | undefined }[]): string {
  const [heading = '', ...rows] = lines.split('\n');
  return [
    heading,
    ...rows.flatMap((row, n) => {
      const { hint } = logouts[n] ?? {};
      return hint === undefined ? [row] : [row, `  → ${textInVariables(hint)}`];
    }),
  ].join('\n');
}
