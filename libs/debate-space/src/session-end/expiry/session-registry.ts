import { keyedHash } from '../../secrets/keyed-hash.js';
import { KeyedMutex } from '../../async/keyed-mutex.js';
import { Sealer } from '../../secrets/sealer.js';
import type { Secret } from '../../secrets/secret.js';
import { isReadable, type ReadRecord, type RecordType } from '../../storage/record-type.js';
import type { DebateSpaceStorage } from '../../storage/storage.js';
import { transact } from '../../storage/transact.js';
import type { Transaction } from '../../storage/transaction.js';

/** An expired session that nobody has claimed for this long is forgotten, unreported. */
export const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
const FORGET_EVERY_MS = 60_000;
const FORGET_LIMIT = 100;
/** 15 digits: a session that never expires ends then. */
const LAST_MOMENT = 999_999_999_999_999;

/** A session in a store of the host. */
export interface UserSession {
  readonly sid: string;
  readonly uid: string;
}

export interface SessionRemoval {
  /** Whether the session was there, with this user. One of all callers who remove a session gets `true`. */
  readonly removed: boolean;
  /** Whether the user has another session that has not expired. */
  readonly others: boolean;
}

/** Under one storage key: keyed hashes of the session id and of the uid. */
interface SessionName {
  readonly hash: string;
  readonly uidHash: string;
}

interface StoredSession extends SessionName {
  /** The session id and the uid, encrypted: with them a sweep finds the session in the host's store. */
  readonly sealed: string;
  /** When it expires, by the clock of the storage. */
  readonly endsAt: number;
  /** When it may be claimed: `endsAt`, or the end of the lease of a claim. */
  readonly dueAt: number;
}

type KnownRecords = readonly ReadRecord<StoredSession>[];
/** @param names of the session, that of the first key first */
type Change<T> = (
  transaction: Transaction,
  known: KnownRecords,
  names: readonly SessionName[],
) => T | Promise<T>;

const digits = (moment: number): string => String(moment).padStart(15, '0');
const recordKey = (hash: string): string => `session:s:${hash}`;
const userKey = (uidHash: string, rest: string): string => `session:u:${uidHash}:${rest}`;
const dueKey = (rest: string): string => `session:x:${rest}`;
const hashOf = (key: string): string => key.slice(key.lastIndexOf(':') + 1);
/** A ciphertext is bound to the hashes of its record. */
const boundTo = ({ hash, uidHash }: SessionName): string => `${hash}\0${uidHash}`;

const SESSION: RecordType<StoredSession> = {
  version: 1,
  key: ({ hash }) => recordKey(hash),
  indexes: ({ hash, uidHash, endsAt, dueAt }) => [
    userKey(uidHash, `${digits(endsAt)}:${hash}`),
    dueKey(`${digits(dueAt)}:${hash}`),
  ],
  isRecord: (value): value is StoredSession => {
    const { hash, uidHash, sealed, endsAt, dueAt } = value as Partial<Record<string, unknown>>;
    return (
      [hash, uidHash, sealed].every((text) => typeof text === 'string') &&
      [endsAt, dueAt].every(Number.isSafeInteger)
    );
  },
};

/**
 * The live sessions of an application, for `session.policy: 'last'` and `session.expiry`, shared by all instances that
 * share the storage. Session ids and uids are hashed and encrypted: who reads the storage can neither take over a session
 * nor learn who has one. Every method rejects with a `StorageError` when the outcome is unknown; the caller may repeat it.
 *
 * A session leaves by `remove`. One that has expired is claimed by an instance, which looks for it in the host's store:
 * either it is still there, and `renew` gets its new time, or it is gone, and the caller who gets `removed: true` reports
 * it.
 *
 * The registry keeps how long a session has left by the clock of the storage, not its date: instances whose clocks differ
 * agree, and a clock that jumps expires and forgets nothing.
 */
export class SessionRegistry {
  readonly #storage: DebateSpaceStorage;
  readonly #keys: readonly Secret[];
  readonly #sealer: Sealer;
  /** A logout that follows a login in this process counts the session of that login. */
  readonly #mutex = new KeyedMutex();
  #forgetAt = 0;

  /** @param keys the first one seals and hashes, all of them open and find */
  constructor(storage: DebateSpaceStorage, keys: readonly Secret[]) {
    this.#storage = storage;
    this.#keys = keys;
    this.#sealer = new Sealer(keys, 'session ids');
  }

  /**
   * Registers a live session, in place of what was known of it: time, user, a claim.
   * @param expiresAt by the host's clock: milliseconds since 1970, or `Infinity` when it never expires. Never `NaN`
   */
  async put(session: UserSession, expiresAt: number): Promise<void> {
    await this.#write(session, expiresAt, false);
    await this.#forgetOld();
  }

  /** Like {@link put}, but only if the session is there with this user: the caller may not know of its end. */
  async renew(session: UserSession, expiresAt: number): Promise<void> {
    await this.#write(session, expiresAt, true);
  }

  /**
   * Removes a session that has ended, claimed or not, unless it is registered with another user. When the last sessions of
   * a user end at the same time, exactly one caller gets `others: false`.
   */
  async remove(session: UserSession): Promise<SessionRemoval> {
    return this.#change(session, async (transaction, known, names) => {
      const own = ownOf(known, names);
      for (const record of own) transaction.replace(SESSION, record, undefined);
      const alive = digits(this.#storage.now() + 1);
      const ranges = names.map(async ({ uidHash }) =>
        this.#storage.range(userKey(uidHash, alive), userKey(uidHash, '~'), { limit: 2 }),
      );
      const sessions = (await Promise.all(ranges)).flat();
      const other = sessions.find(([key]) => !names.some(({ hash }) => hash === hashOf(key)));
      // The commit fails if the other session ends in the meantime.
      if (other) transaction.check(...other);
      return { removed: own.length > 0, others: other !== undefined };
    });
  }

  /**
   * Claims at most `limit` expired sessions, those that expired first before others. Nobody else gets them for `leaseMs`
   * ms; those that are neither removed nor renewed by then may be claimed again, after those that expired before the end
   * of the lease. A session that no key opens is removed: nobody can say whether it still lives.
   */
  async claimExpired(limit: number, leaseMs: number): Promise<readonly UserSession[]> {
    const now = this.#storage.now();
    for (;;) {
      const records = await this.#changeDue(now, limit, (record) =>
        this.#open(record) ? { ...record, dueAt: now + leaseMs } : undefined,
      );
      const sessions = records.flatMap((record) => this.#open(record) ?? []);
      if (sessions.length > 0 || records.length === 0) return sessions;
    }
  }

  /** Resolves when no call is running. */
  idle(): Promise<void> {
    return this.#mutex.idle();
  }

  async #write(session: UserSession, expiresAt: number, onlyIfKnown: boolean): Promise<void> {
    const expires = Math.floor(this.#storage.now() + expiresAt - Date.now());
    const endsAt = Math.min(Math.max(0, expires), LAST_MOMENT);
    await this.#change(session, (transaction, known, names) => {
      const [name] = names;
      if (!name || (onlyIfKnown && ownOf(known, names).length === 0)) return;
      for (const record of known) transaction.replace(SESSION, record, undefined);
      const sealed = this.#sealer.seal(`${session.uid}\0${session.sid}`, boundTo(name)); // no uid has control characters
      transaction.replace(SESSION, undefined, { ...name, sealed, endsAt, dueAt: endsAt });
    });
  }

  /**
   * Changes what is known of a session under the name of each key: it may have been used last before the key was rotated.
   * Runs after earlier calls about the same session, then after those about the same user.
   */
  async #change<T>({ sid, uid }: UserSession, work: Change<T>): Promise<T> {
    const names = this.#keys.map((key) => ({
      hash: keyedHash(key, 'session', sid),
      uidHash: keyedHash(key, 'uid', uid),
    }));
    const keys = names.map(({ hash }) => recordKey(hash));
    const change = (): Promise<T> =>
      transact(this.#storage, async (transaction) =>
        work(transaction, await transaction.readAll(SESSION, keys), names),
      );
    return this.#mutex.run(`session ${sid}`, () => this.#mutex.run(`user ${uid}`, change));
  }

  /** At most {@link FORGET_LIMIT} sessions with each `put`, until none is left. */
  async #forgetOld(): Promise<void> {
    const now = this.#storage.now();
    if (now < this.#forgetAt) return;
    this.#forgetAt = now + FORGET_EVERY_MS;
    const until = Math.max(0, now - FORGOTTEN_AFTER_MS);
    const forgotten = await this.#changeDue(until, FORGET_LIMIT, () => undefined);
    if (forgotten.length === FORGET_LIMIT) this.#forgetAt = now;
  }

  /** Replaces sessions that were due at a moment, the first ones first. @returns the sessions as they were */
  async #changeDue(
    moment: number,
    limit: number,
    change: (record: StoredSession) => StoredSession | undefined,
  ): Promise<readonly StoredSession[]> {
    const replace = async (transaction: Transaction): Promise<readonly StoredSession[]> => {
      const rows = await this.#storage.range(dueKey(''), dueKey(digits(moment + 1)), { limit });
      const keys = rows.map(([row]) => recordKey(hashOf(row)));
      const records = await transaction.readAll(SESSION, keys);
      return rows.flatMap(([row], n) => {
        const record = records[n];
        if (isReadable(record) && SESSION.indexes(record).includes(row)) {
          transaction.replace(SESSION, record, change(record));
          return [record];
        }
        if (!isReadable(record)) transaction.replace(SESSION, record, undefined);
        transaction.set(row, undefined); // leads to nothing
        return [];
      });
    };
    return this.#mutex.run('due', () => transact(this.#storage, replace));
  }

  /** @returns `undefined` when no key opens it, when it belongs to another record, or when it is damaged */
  #open(record: StoredSession): UserSession | undefined {
    const opened = this.#sealer.open(record.sealed, boundTo(record)) ?? '';
    const end = opened.indexOf('\0');
    return end < 0 ? undefined : { sid: opened.slice(end + 1), uid: opened.slice(0, end) };
  }
}

/** Those that are registered with the user of their name. */
function ownOf(known: KnownRecords, names: readonly SessionName[]): readonly StoredSession[] {
  const own = new Set(names.map(boundTo));
  return known.filter(isReadable).filter((record) => own.has(boundTo(record)));
}
