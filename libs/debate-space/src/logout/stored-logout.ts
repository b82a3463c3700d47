import type { DeliveryProgress, LogoutContext, LogoutEntry } from '../logout/logout.js';
import { queueId } from './queue-keys.js';

const VERSION = 1;

/** What the storage keeps of a logout while it waits; its state is the family of its key. */
export interface StoredLogout extends Omit<LogoutEntry, 'uid'>, DeliveryProgress {
  readonly v: number;
  readonly sealed: string;
  /** As it was when the logout came: after a change of the storage key it would be another. */
  readonly uidHash: string;
  /** Due rows of another turn are void. */
  readonly turn: number;
  /** When it was due as the record was last written, in milliseconds: a claim and an extension do not write it. */
  readonly dueAt: number;
}

/** A parked record as it was found: what cannot be read now may be readable with another key or version. */
export interface ParkedLogout {
  readonly record: string;
  readonly hint: string;
  /** By the clock of the machine, in milliseconds. */
  readonly parkedAt: number;
  /** The key of the row that gives it its place in the order. */
  readonly since: string;
}

export interface ReadLogout {
  /** `undefined`: the record is damaged, or of a newer version. */
  readonly stored?: StoredLogout;
  /** `undefined`: nor is its uid known. */
  readonly entry?: LogoutEntry;
}

export const UNREADABLE_HINT =
  'this logout cannot be read: its record is damaged, or was written by a newer version of nestjs-debate-space or with ' +
  'another storageKey. Run that version or restore that key and retry the logout, or discard it';

export const progressOf = ({ attempts, rejections, cause }: DeliveryProgress): DeliveryProgress => ({ attempts, rejections, cause }); // prettier-ignore
export const UNTRIED = progressOf({ attempts: 0, rejections: 0 });

export function newLogout(
  { uid, ...entry }: LogoutEntry,
  dueAt: number,
  { uids }: LogoutContext,
): StoredLogout {
  const uidHash = uids.hash(uid);
  const sealed = uids.seal(uid, 'logout', uidHash);
  return { v: VERSION, ...entry, sealed, uidHash, turn: 1, dueAt, ...UNTRIED };
}

/** Never throws. @param key the id in the queue, to which the record must belong */
export function readLogout(key: string, text: string, { uids }: LogoutContext): ReadLogout {
  const stored = parsed(text) as Partial<StoredLogout> | undefined;
  if (!isLogout(stored)) return {};
  const { id, reason, endedAt, sessionHash, sealed, uidHash } = stored;
  if (queueId(id) !== key) return {};
  const uid = uids.open(sealed, 'logout', uidHash) ?? '';
  return { stored, entry: uid === '' ? undefined : { id, uid, reason, endedAt, sessionHash } };
}

/** Never throws. */
export function readParked(text: string): ParkedLogout {
  const { record, hint, parkedAt, since } = (parsed(text) ?? {}) as Partial<ParkedLogout>;
  const texts = [record, hint, since].filter((part) => typeof part === 'string');
  const [readRecord = '', readHint = UNREADABLE_HINT, readSince = ''] = texts.length === 3 ? texts : [];
  return { record: readRecord, hint: readHint, parkedAt: Number(parkedAt) || 0, since: readSince };
}

function isLogout(stored: Partial<StoredLogout> | undefined): stored is StoredLogout {
  if (stored?.v !== VERSION) return false;
  const { id, sealed, uidHash, reason, turn, endedAt, attempts, rejections } = stored;
  return (
    [id, sealed, uidHash, reason].every((text) => typeof text === 'string') &&
    [turn, endedAt, attempts, rejections].every(Number.isFinite)
  );
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
