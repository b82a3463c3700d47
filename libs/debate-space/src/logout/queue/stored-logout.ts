import { isReadable, readRecord, type RecordType } from 'durable-jobs';
import type { DeliveryProgress, FinishedEntry, LogoutContext, LogoutEntry, LogoutJob } from '../logout.js';
import { endedAtOf, idOf, queueId, type LogoutState } from './queue-keys.js';

/** What the storage keeps of a logout while it waits; its state is the family of its key. */
export interface StoredLogout extends Omit<LogoutEntry, 'uid'>, DeliveryProgress {
  readonly sealed: string;
  /** As it was when the logout came: after a change of the storage key it would be another. */
  readonly uidHash: string;
  /** Due rows of another turn are void. */
  readonly turn: number;
  /** When it was due as the record was last written, in milliseconds: a claim does not write it. */
  readonly dueAt: number;
  readonly retriedAt?: number;
}

/** A parked record as it was found: what cannot be read now may be readable with another key or version. */
export interface ParkedRecord {
  readonly record: string;
  readonly hint: string;
  /** By the clock of the machine, in milliseconds. */
  readonly parkedAt: number;
  /** The key of the row that gives it its place in the order; empty when the record is damaged. */
  readonly since: string;
}

/** As far as the record can be read. */
export interface ReadLogout {
  /** Its uid is empty when it is not known. */
  readonly job: LogoutJob;
  /** Absent when the record is damaged, or of a newer version. */
  readonly stored?: StoredLogout;
  readonly parked?: ParkedRecord;
}

export const UNREADABLE_HINT =
  'this logout cannot be read: its record is damaged, or was written by a newer version of nestjs-debate-space or with ' +
  'another storageKey. Run that version or restore that key and retry the logout, or discard it';

export const UNTRIED: DeliveryProgress = { attempts: 0, rejections: 0, cause: undefined };

export function progressOf({ attempts, rejections, cause }: DeliveryProgress): DeliveryProgress {
  return { attempts, rejections, cause };
}

export const LOGOUT = recordType<StoredLogout>(
  ({ id }) => queueId(id),
  ['id', 'sealed', 'uidHash', 'reason'],
  ['turn', 'endedAt', 'attempts', 'rejections'],
);
export const PARKED = recordType<ParkedRecord>(
  ({ since }) => idOf(since),
  ['record', 'hint', 'since'],
  ['parkedAt'],
);
export const FINISHED = recordType<FinishedEntry>(({ id }) => queueId(id), ['id'], ['finishedAt']);

/** @param job how far delivery has come, where the logout has waited in memory */
export function newLogout({ entry, ...progress }: LogoutJob, { uids }: LogoutContext): StoredLogout {
  const { id, uid, reason, endedAt } = entry;
  const uidHash = uids.hash(uid);
  const sealed = uids.seal(uid, { kind: 'logout', id, uidHash });
  return { id, reason, endedAt, sealed, uidHash, turn: 1, dueAt: 0, ...progressOf(progress) };
}

/** Never throws. @param id the id in the queue, to which the record must belong */
export function readLogout(
  state: LogoutState,
  id: string,
  text: string,
  { uids }: LogoutContext,
): ReadLogout {
  const parked = state === 'parked' ? readParked(id, text) : undefined;
  const found = readRecord(LOGOUT, id, parked?.record ?? text);
  const stored = isReadable(found) ? found : undefined;
  const uid = stored && uids.open(stored.sealed, { kind: 'logout', id: stored.id, uidHash: stored.uidHash });
  const { reason = 'destroyed', endedAt = endedAtOf(id) } = stored ?? {};
  const entry = { id: stored?.id ?? decodeURIComponent(id), uid: uid ?? '', reason, endedAt };
  const job = { entry, ...progressOf(stored ?? UNTRIED), retriedAt: stored?.retriedAt };
  return { job, stored, parked };
}

function readParked(id: string, text: string): ParkedRecord {
  const parked = readRecord(PARKED, id, text);
  return isReadable(parked) ? parked : { record: '', hint: UNREADABLE_HINT, parkedAt: 0, since: '' };
}

/** @param key the id in the queue: the families of the keys are those of the states, and the history */
function recordType<T extends object>(
  key: (record: T) => string,
  texts: readonly (keyof T)[],
  numbers: readonly (keyof T)[],
): RecordType<T> {
  const isRecord = (value: object): value is T =>
    texts.every((name) => typeof (value as T)[name] === 'string') &&
    numbers.every((name) => typeof (value as T)[name] === 'number');
  return { version: 1, key, indexes: () => [], isRecord };
}
