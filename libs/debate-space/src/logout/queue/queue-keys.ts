/** Where a logout stands; the record of each state has a family of its own. */
export type LogoutState = 'pending' | 'parked';

/** Indexes: `due`, by when it is due; `user`; `parkedsince`, by when it was parked. `done`: the history. */
export const QUEUE_FAMILIES = ['pending', 'parked', 'due', 'user', 'parkedsince', 'done'] as const;

const DAY_MS = 86_400_000;
/** Sorts before every moment, so that a claim reads the pause with the range of the due rows. */
export const PAUSE_KEY = 'due:!pause';

const digits = (value: number, length: number): string =>
  String(Math.max(0, Math.floor(value))).padStart(length, '0');

/** The end of all keys that begin with `prefix`; no part of a key begins with `~`. */
export const endOf = (prefix: string): string => `${prefix}~`;

/** The id as a part of a key. It begins with `endedAt`, so that the order of the records is that of age. */
export const queueId = (id: string): string => encodeURIComponent(id.toWellFormed());
export const endedAtOf = (id: string): number => Number(id.slice(0, 15));

export const recordKey = (state: LogoutState, id: string): string => `${state}:${id}`;
export const userPrefix = (uidHash: string): string => `user:${uidHash}:`;
export const userKey = (uidHash: string, id: string): string => `${userPrefix(uidHash)}${id}`;
/** All that ended no later. */
export const userKeysUntil = (uidHash: string, endedAt: number): string =>
  `${userPrefix(uidHash)}${digits(endedAt + 1, 15)}`;
export const sinceKey = (parkedAtMicros: number, id: string): string =>
  `parkedsince:${digits(parkedAtMicros, 18)}:${id}`;

/** In microseconds, so that logouts of one millisecond keep their order. */
export const dueKey = (micros: number, id: string): string => `due:${digits(micros, 18)}:${id}`;
/** All that are due at `now`, in milliseconds. */
export const dueKeysUntil = (now: number): string => `due:${digits((Math.floor(now) + 1) * 1000, 18)}`;
/** In whole milliseconds. */
export const dueAtOf = (key: string): number => Math.floor(Number(key.split(':')[1]) / 1000);

/** One row serves both the history of a user, by day, and its removal, from the start. */
export const donePrefix = (at: number, uidHash: string): string => `${doneDay(at)}${uidHash}:`;
export const doneDay = (at: number): string => `done:${digits(at / DAY_MS, 6)}:`;
export const doneKey = (at: number, uidHash: string, id: string): string =>
  `${donePrefix(at, uidHash)}${digits(at, 15)}:${id}`;
export const doneAtOf = (key: string): number => Number(key.split(':')[3]);
/** The moments at which a day begins, from the day of one moment to that of another. */
export function daysBetween(from: number, to: number): readonly number[] {
  const first = Math.floor(from / DAY_MS);
  return Array.from({ length: Math.floor(to / DAY_MS) - first + 1 }, (_, n) => (first + n) * DAY_MS);
}

/** The id at the end of a key. */
export const idOf = (key: string): string => key.slice(key.lastIndexOf(':') + 1);
