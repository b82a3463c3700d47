import {
  isReadable,
  type ReadRecord,
  type RecordType,
  Sealer,
  type Storage,
  type Transaction,
} from 'durable-jobs';
import { keyedHash } from '../secrets/uid-cipher.js';
import type { Secret } from '../secrets/secret.js';
import { transact } from '../errors.js';

/** How long a reported end silences other instances: requests that were running then may end the session as well. */
export const REPORTED_MS = 60_000;
/** A process that has not reported an end by then has died, or its storage has not answered. */
export const REPORT_WITHIN_MS = 30_000;
/** 15 digits: a session that never expires ends then. */
const LAST_MOMENT = 999_999_999_999_999;

/** A session in a store of the host. */
export interface UserSession {
  readonly sid: string;
  readonly uid: string;
}

/** By the host's clock, in milliseconds since 1970, or `Infinity`. */
export interface SessionDates {
  /** When its cookie expires. */
  readonly expiresAt: number;
  /** When a sweep looks for it. */
  readonly dueAt: number;
}

/** How a caller knows that the session is there. */
export interface Evidence {
  /** When the store had the session with this user, by {@link SessionRegistry.now}. */
  readonly aliveAt: number;
  /** Whether the caller has not seen this session with this user before. */
  readonly isNew: boolean;
}

export interface ClaimedSession extends UserSession {
  /** When it has ended, by {@link SessionRegistry.now}, if whoever ended it has not said that the end is reported. */
  readonly endedAt: number | undefined;
  /** The date of its cookie when it was written last. */
  readonly expiresAt: number;
  readonly claim: number;
}

/** Under one storage key: keyed hashes of the session id and of the uid. */
interface SessionName {
  readonly hash: string;
  readonly uidHash: string;
}

interface StoredSession extends SessionName {
  /** The session id and the uid, encrypted, for the sweep. Empty once its end is reported. */
  readonly sealed: string;
  /** By the clock of the host that wrote it, as in the row of the host's store. */
  readonly expiresAt: number;
  /** By the clock of the storage: when a sweep looks for it, reports its end, or forgets it. */
  readonly dueAt: number;
  /** By the clock of the storage. A session that has ended has a record of its own for each user. */
  readonly endedAt?: number;
}

type KnownRecords = readonly ReadRecord<StoredSession>[];

/** What is stored of a session, under the name of each key; that of the first key first. */
interface StoredRecords {
  readonly names: readonly SessionName[];
  /** With this user. */
  readonly own: readonly StoredSession[];
  /** With any user. */
  readonly live: KnownRecords;
  /** Ends of it for this user. */
  readonly ended: KnownRecords;
}

const digits = (moment: number): string => String(moment).padStart(15, '0');
const recordKey = (hash: string): string => `session:s:${hash}`;
const endedKey = ({ hash, uidHash }: SessionName): string => `session:e:${hash}:${uidHash}`;
const dueKey = (rest: string): string => `session:x:${rest}`;
/** A ciphertext is bound to the hashes of its record. */
const boundTo = ({ hash, uidHash }: SessionName): string => `${hash}\0${uidHash}`;

/** @param row of a session that is due */
function keyOfDue(row: string): string {
  const [hash = '', uidHash] = row.split(':').slice(3);
  return uidHash === undefined ? recordKey(hash) : endedKey({ hash, uidHash });
}

const SESSION: RecordType<StoredSession> = {
  version: 1,
  key: (record) => (record.endedAt === undefined ? recordKey(record.hash) : endedKey(record)),
  indexes: ({ hash, uidHash, dueAt, endedAt }) => [
    dueKey(`${digits(dueAt)}:${hash}${endedAt === undefined ? '' : `:${uidHash}`}`),
  ],
  isRecord: (value): value is StoredSession => {
    const {
      hash,
      uidHash,
      sealed,
      expiresAt,
      dueAt,
      endedAt = 0,
    } = value as Partial<Record<string, unknown>>;
    return (
      [hash, uidHash, sealed].every((text) => typeof text === 'string') &&
      [expiresAt, dueAt, endedAt].every(Number.isSafeInteger)
    );
  },
};

/**
 * The live sessions of an application, for `session.expiry`, shared by all instances that share the storage. Session ids and
 * uids are hashed and encrypted: who reads the storage can neither take over a session nor learn who has one. Every method
 * rejects with a `StorageError` when the outcome is unknown; the caller may repeat it.
 *
 * Whoever gets `true` from `end` reports the end, and says so by `reported`; if that does not come, a sweep is given the end.
 * A session that has expired is claimed by an instance, which looks for it in the host's store: either it is still there, and
 * `postpone` gets the time of the next look, or the instance ends it.
 *
 * What is due is so by the clock of the storage: instances whose clocks differ agree, and a clock that jumps expires nothing.
 */
export class SessionRegistry {
  readonly #storage: Storage;
  readonly #keys: readonly Secret[];
  readonly #sealer: Sealer;

  /** @param keys the first one seals and hashes, all of them open and find */
  constructor(storage: Storage, keys: readonly Secret[]) {
    this.#storage = storage;
    this.#keys = keys;
    const secrets = keys.map((key) => key.reveal());
    this.#sealer = new Sealer(secrets, 'nestjs-debate-space: sealed session ids');
  }

  /**
   * Registers a live session, in place of what was known of it: dates, user, a claim, an end of this user's.
   * @param evidence without it, the caller has just found the session in the host's store
   * @returns `false` if the session may have ended since: only the host's store knows, and nothing has changed
   */
  async put(session: UserSession, dates: SessionDates, evidence?: Evidence): Promise<boolean> {
    return this.#change(session, (transaction, records) => {
      const { own, ended } = records;
      if (evidence) {
        const { aliveAt, isNew } = evidence;
        if ((own.length === 0 && !isNew) || this.#isKnown(ended, aliveAt)) return false;
      }
      this.#write(transaction, session, records, dates);
      return true;
    });
  }

  /** A claimed session is in the host's store: it may be claimed again then, unless it was written since. */
  async postpone(session: ClaimedSession, dueAt: number): Promise<void> {
    const { claim, expiresAt } = session;
    await this.#change(session, (transaction, records) => {
      if (isClaimed(records, claim)) this.#write(transaction, session, records, { expiresAt, dueAt });
    });
  }

  /**
   * Ends a session, registered or not. If it is registered with another user, a sweep looks soon who has it.
   * @param aliveAt when the store had the session with this user, by {@link now}: an end before was another one
   * @param claim for a sweep: ends the session only if nobody has used it since
   * @returns whether the caller is to report the end: no other one does, or has done so within {@link REPORTED_MS}
   */
  async end(
    session: UserSession,
    { aliveAt, claim }: { aliveAt?: number; claim?: number } = {},
  ): Promise<boolean> {
    const endedAt = this.now();
    return this.#change(session, (transaction, records) => {
      const { names, own, live, ended } = records;
      const [name] = names;
      const now = this.now();
      for (const record of live.filter(isReadable))
        if (!own.includes(record)) transaction.replace(SESSION, record, { ...record, dueAt: now });
      const isOver = own.length === 0 && this.#isKnown(ended, aliveAt);
      if (!name || isOver || (claim !== undefined && !isClaimed(records, claim))) return false;
      for (const record of own) transaction.replace(SESSION, record, undefined);
      for (const record of ended) transaction.replace(SESSION, record, undefined);
      const dates = { expiresAt: own[0]?.expiresAt ?? 0, dueAt: now + REPORT_WITHIN_MS, endedAt };
      transaction.replace(SESSION, undefined, { ...name, sealed: this.#seal(session, name), ...dates });
      return true;
    });
  }

  /** The end is reported. All instances know of it for {@link REPORTED_MS}, unless the session is registered again. */
  async reported(session: UserSession): Promise<void> {
    await this.#change(session, (transaction, { ended }) => {
      const dueAt = this.now() + REPORTED_MS;
      for (const record of ended.filter(isReadable))
        transaction.replace(SESSION, record, { ...record, sealed: '', dueAt });
    });
  }

  /** Removes a session that nobody is to report, and an end of it that is not reported. */
  async remove(session: UserSession): Promise<void> {
    await this.#change(session, (transaction, { own, ended }) => {
      const unreported = ended.filter((record) => isReadable(record) && record.sealed !== '');
      for (const record of [...own, ...unreported]) transaction.replace(SESSION, record, undefined);
    });
  }

  /**
   * Claims at most `limit` sessions that have expired, or whose end nobody has reported, in the order of their time.
   * Nobody else gets them for `leaseMs` ms; those that are neither ended nor postponed by then may be claimed again, after
   * those that were due before. A session that no key opens is removed: nobody can say whether it still lives.
   */
  async claimExpired(limit: number, leaseMs: number): Promise<readonly ClaimedSession[]> {
    for (;;) {
      const claim = this.now() + leaseMs;
      const due = await transact(this.#storage, (transaction) => this.#claimDue(transaction, limit, claim));
      const sessions = due.flatMap((record): ClaimedSession[] => {
        const session = this.#open(record);
        return session ? [{ ...session, claim, expiresAt: record.expiresAt, endedAt: record.endedAt }] : [];
      });
      if (sessions.length > 0 || due.length === 0) return sessions;
    }
  }

  /** The clock that all instances share. */
  now(): number {
    return this.#storage.now();
  }

  /** Removes what is due and has nothing to be claimed. @returns the sessions that are due, as they were */
  async #claimDue(transaction: Transaction, limit: number, claim: number): Promise<readonly StoredSession[]> {
    const rows = await this.#storage.range(dueKey(''), dueKey(digits(this.now() + 1)), { limit });
    const keys = rows.map(([row]) => keyOfDue(row));
    const records = await transaction.readAll(SESSION, keys);
    return rows.flatMap(([row], n) => {
      const record = records[n];
      if (isReadable(record) && SESSION.indexes(record).includes(row)) {
        const claimed = this.#open(record) && { ...record, dueAt: claim };
        transaction.replace(SESSION, record, claimed);
        return [record];
      }
      if (!isReadable(record)) transaction.replace(SESSION, record, undefined);
      transaction.set(row, undefined); // leads to nothing
      return [];
    });
  }

  /** Whether a caller is reporting the end or has reported it, and the store did not have the session since. */
  #isKnown(ended: KnownRecords, aliveAt = -Infinity): boolean {
    const now = this.now();
    return ended.some(
      (record) => isReadable(record) && record.dueAt > now && (record.endedAt ?? 0) >= aliveAt,
    );
  }

  #write(
    transaction: Transaction,
    session: UserSession,
    { names, live, ended }: StoredRecords,
    { expiresAt, dueAt }: SessionDates,
  ): void {
    const [name] = names;
    if (!name) return;
    for (const record of [...live, ...ended]) transaction.replace(SESSION, record, undefined);
    const inMs = dueAt - Date.now();
    const dates = { expiresAt: clamp(expiresAt), dueAt: clamp(this.now() + inMs) };
    transaction.replace(SESSION, undefined, { ...name, sealed: this.#seal(session, name), ...dates });
  }

  #seal({ sid, uid }: UserSession, name: SessionName): string {
    return this.#sealer.seal(`${uid}\0${sid}`, boundTo(name)); // no uid has control characters
  }

  /** @returns `undefined` when no key opens it, when it belongs to another record, or when nothing is left to be done */
  #open(record: StoredSession): UserSession | undefined {
    const opened = this.#sealer.open(record.sealed, boundTo(record)) ?? '';
    const end = opened.indexOf('\0');
    return end < 0 ? undefined : { sid: opened.slice(end + 1), uid: opened.slice(0, end) };
  }

  /** Changes what is known of a session under the name of each key: it may have been used last before the key was rotated. */
  async #change<T>(
    { sid, uid }: UserSession,
    work: (transaction: Transaction, records: StoredRecords) => T,
  ): Promise<T> {
    const names = this.#keys.map((key) => ({
      hash: keyedHash(key, 'session', sid),
      uidHash: keyedHash(key, 'uid', uid),
    }));
    const keys = [...names.map(({ hash }) => recordKey(hash)), ...names.map(endedKey)];
    return transact(this.#storage, async (transaction) => {
      const records = await transaction.readAll(SESSION, keys);
      const live = records.slice(0, names.length);
      const ownNames = new Set(names.map(boundTo));
      const own = live.filter(isReadable).filter((record) => ownNames.has(boundTo(record)));
      return work(transaction, { names, own, live, ended: records.slice(names.length) });
    });
  }
}

function isClaimed({ own }: StoredRecords, claim: number): boolean {
  return own.some(({ dueAt }) => dueAt === claim);
}

function clamp(moment: number): number {
  return Math.min(Math.max(0, Math.floor(moment)), LAST_MOMENT);
}
