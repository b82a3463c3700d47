import type { EndReason, OutboxStats, ParkedLogout } from 'nestjs-debate-space';
import { inWords, moment } from '../pages/in-words.js';

const REASONS: Readonly<Record<EndReason, string>> = {
  destroyed: 'The session ended',
  'user-removed': 'The user was removed from the session',
  'user-replaced': 'Another user took over the session',
  cleared: 'All sessions were cleared',
  abandoned: 'The browser left the session',
  expired: 'The session expired',
  explicit: 'The app ended the session',
  requested: 'The app requested the logout',
  erasure: 'The user was to be erased',
};

/** What `views/admin/outbox.eta` shows. */
export interface OutboxPage {
  readonly notice: string | undefined;
  readonly figures: readonly (readonly [name: string, value: string])[];
  /** What is in the way of new logouts. */
  readonly warning: string | undefined;
  readonly storage: string;
  readonly service: string;
  readonly parked: readonly {
    readonly path: string;
    readonly uid: string;
    readonly what: string;
    readonly facts: string;
    readonly hint: string;
  }[];
}

export function outboxPage(
  stats: OutboxStats,
  parked: readonly ParkedLogout[],
  notice: string | undefined,
): OutboxPage {
  const { engine, durable, degraded, serviceDown, pending, oldestPendingMs } = stats;
  return {
    notice,
    figures: [
      ['Waiting', String(pending)],
      ['Parked', String(stats.parked)],
      ['The oldest waits for', oldestPendingMs === undefined ? '–' : inWords(oldestPendingMs)],
    ],
    warning: degraded ? 'The storage takes no new logouts: they are kept in memory only.' : undefined,
    storage: `${engine}, ${durable ? 'survives a crash' : 'lost in a crash'}`,
    service: serviceDown ? 'does not answer' : 'no outage detected',
    parked: parked.map(({ id, uid, reason, endedAt, parkedAt, attempts, cause, hint }) => ({
      path: `/admin/outbox/${encodeURIComponent(id)}`,
      uid: uid === '' ? 'unreadable' : uid,
      what: 'Logout',
      facts: `${REASONS[reason]} at ${moment(endedAt)}. Parked at ${moment(parkedAt)} after ${attempts === 1 ? '1 attempt' : `${attempts} attempts`}, the last one: ${cause}.`,
      hint,
    })),
  };
}
