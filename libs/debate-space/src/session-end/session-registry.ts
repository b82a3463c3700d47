import { KeyedMutex } from '../logout/keyed-mutex.js';
import { type RecordType, UnreadableRecord } from '../storage/record-type.js';
import type { DebateSpaceStorage } from '../storage/storage.js';
import { transact } from '../storage/transact.js';
import type { Transaction } from '../storage/transaction.js';

/** An expired session that nobody has claimed for this long is forgotten, unreported. */
export const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
const FORGET_EVERY_MS = 60_000;
const FORGET_LIMIT = 100;
/** 15 digits: a session that never expires ends then. */
const LAST_MOMENT = 999_999_999_999_999;

/** Under one storage key. */
export interface SessionName {
  /** Keyed hash of the session id. */
  readonly hash: string;
  /** Keyed hash of the uid. */
  readonly uidHash: string;
}

export interface ExpiredSession extends SessionName {
  /** The session id and the uid, encrypted: with them a sweep finds the session in the host's store. */
  readonly sealed: string;
}

export interface RegisteredSession extends ExpiredSession {
  /** By the host's clock: milliseconds since 1970, or `Infinity` when the session never expires. Never `NaN`. */
  readonly expiresAt: number;
}

export interface SessionRemoval {
  /** Whether the session was there, with this user. One of all callers who remove a session gets `true`. */
  readonly removed: boolean;
  /** Whether the user has another session that has not expired. */
  readonly others: boolean;
}

interface StoredSession extends ExpiredSession {
  /** When it expires, by the clock of the storage. */
  readonly endsAt: number;
  /** When it may be claimed: `endsAt`, or the end of the lease of a claim. */
  readonly dueAt: number;
}

const digits = (moment: number): string => String(moment).padStart(15, '0');
const recordKey = (hash: string): string => `session:s:${hash}`;
const userKey = (uidHash: string, rest: string): string => `session:u:${uidHash}:${rest}`;
const dueKey = (rest: string): string => `session:x:${rest}`;
const recordKeys = (names: readonly SessionName[]): readonly string[] =>
  names.map(({ hash }) => recordKey(hash));
const hashOf = (key: string): string => key.slice(key.lastIndexOf(':') + 1);

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
 * share the storage. Every method rejects with a `StorageError` when the outcome is unknown; the caller may repeat it.
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
  /** A logout that follows a login in this process counts the session of that login. */
  readonly #mutex = new KeyedMutex();
  #forgetAt = 0;

  constructor(storage: DebateSpaceStorage) {
    this.#storage = storage;
  }

  /** Registers a live session, in place of what was known under the same hash or a former name: time, user, a claim. */
  async put(session: RegisteredSession, former: readonly SessionName[] = []): Promise<void> {
    const stored = this.#stored(session);
    await this.#inOrder(stored, () =>
      transact(this.#storage, async (transaction) => {
        const known = await transaction.readAll(SESSION, recordKeys([stored, ...former]));
        for (const record of known) transaction.replace(SESSION, record, undefined);
        transaction.replace(SESSION, undefined, stored);
      }),
    );
    await this.#forgetOld();
  }

  /** Like {@link put}, but only if the session is there with this user: the caller may not know of its end. */
  async renew(session: RegisteredSession, former: readonly SessionName[] = []): Promise<void> {
    const stored = this.#stored(session);
    await this.#inOrder(stored, () =>
      transact(this.#storage, async (transaction) => {
        const known = await sessionsOf(transaction, [stored, ...former]);
        for (const record of known) transaction.replace(SESSION, record, undefined);
        if (known.length > 0) transaction.replace(SESSION, undefined, stored);
      }),
    );
  }

  /**
   * Removes a session that has ended, claimed or not, unless it is registered with another user. When the last sessions of
   * a user end at the same time, exactly one caller gets `others: false`.
   */
  async remove(name: SessionName, former: readonly SessionName[] = []): Promise<SessionRemoval> {
    return this.#inOrder(name, () =>
      transact(this.#storage, async (transaction) => {
        const names = [name, ...former];
        const known = await sessionsOf(transaction, names);
        for (const record of known) transaction.replace(SESSION, record, undefined);
        const alive = digits(this.#storage.now() + 1);
        const ranges = names.map(async ({ uidHash }) =>
          this.#storage.range(userKey(uidHash, alive), userKey(uidHash, '~'), { limit: 2 }),
        );
        const sessions = (await Promise.all(ranges)).flat();
        const other = sessions.find(([key]) => !names.some(({ hash }) => hash === hashOf(key)));
        // The commit fails if the other session ends in the meantime.
        if (other) transaction.check(...other);
        return { removed: known.length > 0, others: other !== undefined };
      }),
    );
  }

  /**
   * Claims at most `limit` expired sessions, those that expired first before others. Nobody else gets them for `leaseMs`
   * ms; those that are neither removed nor renewed by then may be claimed again, after those that expired before the end
   * of the lease.
   */
  async claimExpired(limit: number, leaseMs: number): Promise<readonly ExpiredSession[]> {
    const now = this.#storage.now();
    const claim = (session: StoredSession): StoredSession => ({ ...session, dueAt: now + leaseMs });
    const claimed = await this.#mutex.run('due', () => this.#changeDue(now, limit, claim));
    return claimed.map(({ hash, uidHash, sealed }) => ({ hash, uidHash, sealed }));
  }

  /** Resolves when no call is running. */
  idle(): Promise<void> {
    return this.#mutex.idle();
  }

  /** At most {@link FORGET_LIMIT} sessions with each `put`, until none is left. */
  async #forgetOld(): Promise<void> {
    const now = this.#storage.now();
    if (now < this.#forgetAt) return;
    this.#forgetAt = now + FORGET_EVERY_MS;
    const until = Math.max(0, now - FORGOTTEN_AFTER_MS);
    const forgotten = await this.#mutex.run('due', () =>
      this.#changeDue(until, FORGET_LIMIT, () => undefined),
    );
    if (forgotten.length === FORGET_LIMIT) this.#forgetAt = now;
  }

  /** Replaces sessions that were due at a moment, the first ones first. @returns the sessions as they were */
  #changeDue(
    moment: number,
    limit: number,
    change: (session: StoredSession) => StoredSession | undefined,
  ): Promise<readonly StoredSession[]> {
    return transact(this.#storage, async (transaction) => {
      const until = dueKey(digits(moment + 1));
      const rows = await this.#storage.range(dueKey(''), until, { limit });
      const records = await transaction.readAll(
        SESSION,
        rows.map(([key]) => recordKey(hashOf(key))),
      );
      return records.flatMap((record, n) => {
        const row = rows[n]?.[0] ?? '';
        if (record && !(record instanceof UnreadableRecord) && SESSION.indexes(record).includes(row)) {
          transaction.replace(SESSION, record, change(record));
          return [record];
        }
        if (record instanceof UnreadableRecord) transaction.replace(SESSION, record, undefined);
        transaction.set(row, undefined); // leads to nothing
        return [];
      });
    });
  }

  #stored({ hash, uidHash, sealed, expiresAt }: RegisteredSession): StoredSession {
    const endsAt = Math.floor(this.#storage.now() + expiresAt - Date.now());
    const moment = Math.min(Math.max(0, endsAt), LAST_MOMENT);
    return { hash, uidHash, sealed, endsAt: moment, dueAt: moment };
  }

  /** After earlier calls about the same session, then after those about the same user. */
  async #inOrder<T>({ hash, uidHash }: SessionName, work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(recordKey(hash), () => this.#mutex.run(userKey(uidHash, ''), work));
  }
}

/** Those that are registered under one of these names with its user. */
async function sessionsOf(
  transaction: Transaction,
  names: readonly SessionName[],
): Promise<readonly StoredSession[]> {
  const records = await transaction.readAll(SESSION, recordKeys(names));
  return records.flatMap((record, n) =>
    record && !(record instanceof UnreadableRecord) && record.uidHash === names[n]?.uidHash ? [record] : [],
  );
}
