import type { Columns, Row } from './database.js';
import type { ErasureOutcome, Job, Reference } from './storage.js';

/** Columns of a job that nobody has tried. */
export const UNTRIED: Columns = {
  state: `'waiting'`,
  attempts: '0',
  failures: '0',
  rejections: '0',
  uncertain: '0',
};
/** Columns of a reference that is new. */
export const UNSTARTED: Columns = {
  overdue_ms: '0',
  paused: '0',
  canceled: '0',
  started: '0',
  total: '0',
  users_erased: '0',
  users_not_found: '0',
  users_vetoed: '0',
  users_canceled: '0',
};
/** The assignments that end a job, without its outcome and its moment. */
export const END = `state = 'done', sealed = '', due_at = NULL, token = NULL, hint = NULL`;

/** The counters of a reference. */
export const COUNTERS: Readonly<Record<ErasureOutcome, string>> = {
  erased: 'users_erased',
  'not-found': 'users_not_found',
  vetoed: 'users_vetoed',
  canceled: 'users_canceled',
};
export const ENDED_USERS = Object.values(COUNTERS).join(' + ');

const isEmpty = (value: unknown): boolean => value === null || value === undefined;
export const numberOr = (value: unknown): number | undefined => (isEmpty(value) ? undefined : Number(value));
export const textOr = (value: unknown): string | undefined => (isEmpty(value) ? undefined : String(value));
const flag = (value: unknown): boolean => Number(value) > 0;

/** An id without the application in front of it. */
export const idOf = ({ id, app }: Row): string => String(id).slice(String(app).length + 1);

export const jobOf = (row: Row): Job => ({
  id: idOf(row),
  kind: row.kind as Job['kind'],
  subject: String(row.subject),
  sealed: String(row.sealed),
  details: String(row.details),
  state: row.state as Job['state'],
  outcome: textOr(row.outcome) as Job['outcome'],
  cause: textOr(row.cause),
  hint: textOr(row.hint),
  attempts: Number(row.attempts),
  failures: Number(row.failures),
  rejections: Number(row.rejections),
  uncertain: textOr(row.uncertain_mark) ?? (flag(row.uncertain) ? '' : undefined),
  dueAt: numberOr(row.due_at),
  since: Number(row.since),
  settledAt: numberOr(row.ended_at),
});

export const referenceOf = (row: Row): Reference => ({
  key: idOf(row),
  reference: String(row.name),
  mode: row.mode as Reference['mode'],
  requestedBy: textOr(row.requested_by),
  isList: flag(row.is_list),
  requestedAt: Number(row.requested_at),
  mark: textOr(row.mark) ?? '',
  complete: flag(row.complete),
  paused: flag(row.paused),
  canceled: flag(row.canceled),
  started: flag(row.started),
  finishedAt: numberOr(row.finished_at),
  total: Number(row.total),
  counts: {
    erased: Number(row.users_erased),
    'not-found': Number(row.users_not_found),
    vetoed: Number(row.users_vetoed),
    canceled: Number(row.users_canceled),
  },
});
