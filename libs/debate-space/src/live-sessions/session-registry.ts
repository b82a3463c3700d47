import {
  isReadable,
  type ReadRecord,
  type RecordType,
  Sealer,
  type Storage,
  type Transaction,
} from 'durable-jobs';
import { keyedHash } from '../secrets/uid-cipher.js';
import { KeyedMutex } from '../async/keyed-mutex.js';
import type { Secret } from '../secrets/secret.js';
import { transact } from '../errors.js';

/** An expired session that nobody has claimed for this long is forgotten, unreported. */
export const FORGOTTEN_AFTER_MS = 7 * 24 * 60 * 60 * 1000;
/** How long a reported end silences other instances: requests that were running then may end the session as well. */
export const REPORTED_MS = 60_000;
const FORGET_EVERY_MS = 60_000;
const FORGET_LIMIT = 100;
/** 15 digits: a session that never expires ends then. */
const LAST_MOMENT = 999_999_999_999_999;

/** A session in a store of the host. */
export interface UserSession {
  readonly sid: string;
  readonly uid: string;
}

/** What the caller knows of a session that it writes. */
export interface Known {
  /** The date of its cookie. @defaultValue until when it counts as live */
  readonly expiresAt?: number;
  /** The last user whom the caller has seen in the session, `null` for none. Without it `put` checks nothing. */
  readonly believedUid?: string | null;
  /** When the store had the session with this user, by {@link SessionRegistry.now}. @defaultValue now */
  readonly aliveAt?: number;
}

/** Another instance has changed the session at the same time. Only the host's store knows which change was last. */
export interface Conflict {
  /** The user of the session, as the registry has it. */
  readonly registered: string | undefined;
}

export interface EndOptions {
  /** Without `reported` by then, the end is given to a sweep. */
  readonly leaseMs: number;
  /** Whether an end counts only if the user has no other live session. Otherwise nobody looks for others. */
  readonly lastOnly?: boolean;
  /** When the store had the session with this user, by {@link SessionRegistry.now}: an end before was another one. */
  readonly aliveAt?: number | undefined;
  /** For a sweep: ends the session only if nobody has used it since this claim. */
  readonly claim?: number;
}

export interface RegisteredEnd {
  /**
   * `false` only if another caller has ended it since it was known to be alive, and is reporting the end or has done so
   * within {@link REPORTED_MS}.
   */
  readonly isFirst: boolean;
  /** Whether the user has another session that has not expired. */
  readonly others: boolean;
  /** The user of the session, as the registry has it, if that is another one. */
  readonly registered: string | undefined;
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
  /** The session id and the uid, encrypted: with them a sweep finds the session in the host's store. */
  readonly sealed: string;
  /** Until when it counts as live, or when it has ended, by the clock of the storage. */
  readonly endsAt: number;
  /** When it may be claimed: `endsAt`, or the end of a lease. Once its end is reported: when it is forgotten. */
  readonly dueAt: number;
  /** By the clock of the host that wrote it, as in the row of the host's store. */
  readonly expiresAt: number;
  /** Absent while it lives. A session that has ended has a record of its own for each user. */
  readonly end?: 'unreported' | 'reported';
}

type KnownRecords = readonly ReadRecord<StoredSession>[];

/** What is stored of a session and its user, under the name of each key; that of the first key first. */
interface StoredRecords {
  readonly names: readonly SessionName[];
  /** Those of the session, with this user. */
  readonly own: readonly StoredSession[];
  readonly live: KnownRecords;
  readonly ended: KnownRecords;
}

type Change<T> = (transaction: Transaction, records: StoredRecords) => T | Promise<T>;

const digits = (moment: number): string => String(moment).padStart(15, '0');
const recordKey = (hash: string): string => `session:s:${hash}`;
const endedKey = ({ hash, uidHash }: SessionName): string => `session:e:${hash}:${uidHash}`;
const userKey = (uidHash: string, rest: string): string => `session:u:${uidHash}:${rest}`;
const hashOf = (key: string): string => key.slice(key.lastIndexOf(':') + 1);
/** A ciphertext is bound to the hashes of its record. */
const boundTo = ({ hash, uidHash }: SessionName): string => `${hash}\0${uidHash}`;

/** `x`: waits for a sweep. `f`: waits to be forgotten. */
type Waiting = 'x' | 'f';
const dueKey = (waiting: Waiting, rest: string): string => `session:${waiting}:${rest}`;

/** @param row that of a session which waits */
function keyOfDue(row: string): string {
  const [hash = '', uidHash] = row.split(':').slice(3);
  return uidHash === undefined ? recordKey(hash) : endedKey({ hash, uidHash });
}

const SESSION: RecordType<StoredSession> = {
  version: 1,
  key: (record) => (record.end ? endedKey(record) : recordKey(record.hash)),
  indexes: ({ hash, uidHash, endsAt, dueAt, end }) =>
    end
      ? [dueKey(end === 'reported' ? 'f' : 'x', `${digits(dueAt)}:${hash}:${uidHash}`)]
      : [userKey(uidHash, `${digits(endsAt)}:${hash}`), dueKey('x', `${digits(dueAt)}:${hash}`)],
  isRecord: (value): value is StoredSession => {
    const { hash, uidHash, sealed, ...rest } = value as Partial<Record<string, unknown>>;
    return (
      [hash, uidHash, sealed].every((text) => typeof text === 'string') &&
      [rest.endsAt, rest.dueAt, rest.expiresAt].every(Number.isSafeInteger) &&
      [undefined, 'unreported', 'reported'].includes(rest.end as string | undefined)
    );
  },
};

/**
 * The live sessions of an application, for `session.policy: 'last'` and `session.expiry`, shared by all instances that
 * share the storage. Session ids and uids are hashed and encrypted: who reads the storage can neither take over a session
 * nor learn who has one. Every method rejects with a `StorageError` when the outcome is unknown; the caller may repeat it.
 *
 * A session leaves by `end`, and whoever gets `isFirst` reports it, and says so by `reported`; if that does not come, a
 * sweep is given the end. A session that has expired is claimed by an instance, which looks for it in the host's store:
 * either it is still there, and `postpone` gets the time of the next look, or the instance ends it.
 *
 * The registry keeps how long a session has left by the clock of the storage, not its date: instances whose clocks differ
 * agree, and a clock that jumps expires and forgets nothing.
 */
export class SessionRegistry {
  readonly #storage: Storage;
  readonly #keys: readonly Secret[];
  readonly #sealer: Sealer;
  /** A logout that follows a login in this process counts the session of that login. */
  readonly #mutex = new KeyedMutex();
  #forgetAt = 0;

  /** @param keys the first one seals and hashes, all of them open and find */
  constructor(storage: Storage, keys: readonly Secret[]) {
    this.#storage = storage;
    this.#keys = keys;
    const secrets = keys.map((key) => key.reveal());
    this.#sealer = new Sealer(secrets, 'nestjs-debate-space: sealed session ids');
  }

  /**
   * Registers a live session, in place of what was known of it: time, user, a claim, an end of this user's.
   * @param liveUntil by the host's clock: milliseconds since 1970, or `Infinity` when it never expires. Never `NaN`
   * @returns a conflict with what others have done to the session; then nothing has changed
   */
  async put(session: UserSession, liveUntil: number, known: Known = {}): Promise<Conflict | undefined> {
    const { believedUid, aliveAt = this.now() } = known;
    const conflict = await this.#change(session, async (transaction, records) => {
      if (believedUid !== undefined) {
        const registered = this.#registered(records, [session.uid, believedUid]);
        const isForeign = believedUid !== null && believedUid !== session.uid;
        const isOver =
          isKnown(records.ended, this.now(), aliveAt) ||
          (isForeign && (await this.#hasEnded(transaction, session.sid, believedUid)));
        if (registered !== undefined || isOver) return { registered };
      }
      for (const record of records.ended) transaction.replace(SESSION, record, undefined);
      this.#write(transaction, session, records, this.#times(liveUntil, known));
      return undefined;
    });
    await this.#forgetOld();
    return conflict;
  }

  /** Like {@link put}, but only if the session is there with this user: the caller may not know of its end. */
  async renew(session: UserSession, liveUntil: number, known: Known = {}): Promise<void> {
    await this.#change(session, (transaction, records) => {
      if (records.own.length > 0) this.#write(transaction, session, records, this.#times(liveUntil, known));
    });
  }

  /** A claimed session is in the host's store: it may be claimed again then, unless it was written since. */
  async postpone(session: ClaimedSession, liveUntil: number): Promise<void> {
    await this.#change(session, (transaction, records) => {
      if (records.own.some(({ dueAt }) => dueAt === session.claim))
        this.#write(transaction, session, records, this.#times(liveUntil, session));
    });
  }

  /**
   * Ends a session, registered or not. When the last sessions of a user end at the same time, exactly one caller gets
   * `others: false`. If others are there and only the last session counts, the end is as good as reported.
   */
  async end(session: UserSession, options: EndOptions): Promise<RegisteredEnd> {
    const { leaseMs, lastOnly, aliveAt, claim } = options;
    const endsAt = this.now();
    return this.#change(session, async (transaction, records) => {
      const { names, own, ended } = records;
      const [name] = names;
      const now = this.now();
      const registered = this.#registered(records, [session.uid]);
      const isClaimLost = claim !== undefined && !own.some(({ dueAt }) => dueAt === claim);
      // A process that does not know the present key yet registers a session without finding its earlier end.
      const isEnded = own.length === 0 && isKnown(ended, now, aliveAt);
      if (!name || isClaimLost || isEnded) return { isFirst: false, others: false, registered };
      for (const record of [...own, ...ended]) transaction.replace(SESSION, record, undefined);
      const others = lastOnly === true && (await this.#hasOthers(transaction, names));
      const [end, knownMs] = others
        ? (['reported', REPORTED_MS] as const)
        : (['unreported', leaseMs] as const);
      const times = { endsAt, dueAt: now + knownMs, expiresAt: own[0]?.expiresAt ?? 0 };
      const sealed = others ? '' : this.#seal(session, name);
      transaction.replace(SESSION, undefined, { ...name, sealed, ...times, end });
      return { isFirst: true, others, registered };
    });
  }

  /** The end is reported. All instances know of it for {@link REPORTED_MS}, unless the session is registered again. */
  async reported(session: UserSession): Promise<void> {
    await this.#change(session, (transaction, { ended }) => {
      const dueAt = this.now() + REPORTED_MS;
      for (const record of ended.filter(isReadable))
        transaction.replace(SESSION, record, { ...record, sealed: '', dueAt, end: 'reported' });
    });
    await this.#forgetOld();
  }

  /** Removes a session that nobody is to report, and an end of it that is not reported. */
  async remove(session: UserSession): Promise<void> {
    await this.#change(session, (transaction, { own, ended }) => {
      const unreported = ended.filter((record) => isReadable(record) && record.end === 'unreported');
      for (const record of [...own, ...unreported]) transaction.replace(SESSION, record, undefined);
    });
  }

  /**
   * Claims at most `limit` sessions that have expired, or whose end nobody has reported, in the order of their time.
   * Nobody else gets them for `leaseMs` ms; those that are neither ended nor postponed by then may be claimed again, after
   * those that were due before. A session that no key opens is removed: nobody can say whether it still lives.
   */
  async claimExpired(limit: number, leaseMs: number): Promise<readonly ClaimedSession[]> {
    const now = this.now();
    const claim = now + leaseMs;
    await this.#forget('f', now);
    for (;;) {
      const records = await this.#changeDue('x', now, limit, (record) =>
        this.#open(record) ? { ...record, dueAt: claim } : undefined,
      );
      const sessions = records.flatMap((record) => {
        const session = this.#open(record);
        return session
          ? [{ ...session, claim, expiresAt: record.expiresAt, endedAt: record.end && record.endsAt }]
          : [];
      });
      if (sessions.length > 0 || records.length === 0) return sessions;
    }
  }

  /** The clock that all instances share. */
  now(): number {
    return this.#storage.now();
  }

  /** Resolves when no call is running. */
  idle(): Promise<void> {
    return this.#mutex.idle();
  }

  /** @returns the user of the live session, if it is none of these */
  #registered({ live, own }: StoredRecords, uids: readonly (string | null)[]): string | undefined {
    const foreign = live.filter(isReadable).filter((record) => !own.includes(record));
    return foreign.flatMap((record) => this.#open(record)?.uid ?? []).find((uid) => !uids.includes(uid));
  }

  async #hasEnded(transaction: Transaction, sid: string, uid: string): Promise<boolean> {
    const keys = this.#namesOf({ sid, uid }).map(endedKey);
    return isKnown(await transaction.readAll(SESSION, keys), this.now());
  }

  async #hasOthers(transaction: Transaction, names: readonly SessionName[]): Promise<boolean> {
    const alive = digits(this.now() + 1);
    const ranges = names.map(async ({ uidHash }) =>
      this.#storage.range(userKey(uidHash, alive), userKey(uidHash, '~'), { limit: 2 }),
    );
    const sessions = (await Promise.all(ranges)).flat();
    const other = sessions.find(([key]) => !names.some(({ hash }) => hash === hashOf(key)));
    // The commit fails if the other session ends in the meantime.
    if (other) transaction.check(...other);
    return other !== undefined;
  }

  #times(liveUntil: number, { expiresAt = liveUntil }: Known): Pick<StoredSession, 'endsAt' | 'expiresAt'> {
    const until = Math.floor(this.now() + liveUntil - Date.now());
    return { endsAt: clamp(until), expiresAt: clamp(Math.floor(expiresAt)) };
  }

  #write(
    transaction: Transaction,
    session: UserSession,
    { names, live }: StoredRecords,
    times: Pick<StoredSession, 'endsAt' | 'expiresAt'>,
  ): void {
    const [name] = names;
    if (!name) return;
    for (const record of live) transaction.replace(SESSION, record, undefined);
    const sealed = this.#seal(session, name);
    transaction.replace(SESSION, undefined, { ...name, sealed, ...times, dueAt: times.endsAt });
  }

  #seal({ sid, uid }: UserSession, name: SessionName): string {
    return this.#sealer.seal(`${uid}\0${sid}`, boundTo(name)); // no uid has control characters
  }

  #namesOf({ sid, uid }: UserSession): readonly SessionName[] {
    return this.#keys.map((key) => ({
      hash: keyedHash(key, 'session', sid),
      uidHash: keyedHash(key, 'uid', uid),
    }));
  }

  /**
   * Changes what is known of a session under the name of each key: it may have been used last before the key was rotated.
   * Runs after earlier calls about the same session, then after those about the same user.
   */
  async #change<T>(session: UserSession, work: Change<T>): Promise<T> {
    const { sid, uid } = session;
    const names = this.#namesOf(session);
    const keys = [...names.map(({ hash }) => recordKey(hash)), ...names.map(endedKey)];
    const change = (): Promise<T> =>
      transact(this.#storage, async (transaction) => {
        const records = await transaction.readAll(SESSION, keys);
        const live = records.slice(0, names.length);
        const ended = records.slice(names.length);
        return work(transaction, { names, own: ownOf(live, names), live, ended });
      });
    return this.#mutex.run(`session ${sid}`, () => this.#mutex.run(`user ${uid}`, change));
  }

  /** At most {@link FORGET_LIMIT} of a kind with each call that may leave some behind, until none is left. */
  async #forgetOld(): Promise<void> {
    const now = this.now();
    if (now < this.#forgetAt) return;
    this.#forgetAt = now + FORGET_EVERY_MS;
    const areMore = [
      await this.#forget('x', Math.max(0, now - FORGOTTEN_AFTER_MS)),
      await this.#forget('f', now),
    ];
    if (areMore.includes(true)) this.#forgetAt = now;
  }

  /** @returns whether there may be more */
  async #forget(waiting: Waiting, until: number): Promise<boolean> {
    const forgotten = await this.#changeDue(waiting, until, FORGET_LIMIT, () => undefined);
    return forgotten.length === FORGET_LIMIT;
  }

  /** Replaces sessions that were due at a moment, the first ones first. @returns the sessions as they were */
  async #changeDue(
    waiting: Waiting,
    moment: number,
    limit: number,
    change: (record: StoredSession) => StoredSession | undefined,
  ): Promise<readonly StoredSession[]> {
    const replace = async (transaction: Transaction): Promise<readonly StoredSession[]> => {
      const [from, to] = [dueKey(waiting, ''), dueKey(waiting, digits(moment + 1))];
      const rows = await this.#storage.range(from, to, { limit });
      const records = await transaction.readAll(
        SESSION,
        rows.map(([row]) => keyOfDue(row)),
      );
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
    return this.#mutex.run(`due ${waiting}`, () => transact(this.#storage, replace));
  }

  /** @returns `undefined` when no key opens it, when it belongs to another record, or when it is damaged */
  #open(record: StoredSession): UserSession | undefined {
    const opened = this.#sealer.open(record.sealed, boundTo(record)) ?? '';
    const end = opened.indexOf('\0');
    return end < 0 ? undefined : { sid: opened.slice(end + 1), uid: opened.slice(0, end) };
  }
}

function clamp(moment: number): number {
  return Math.min(Math.max(0, moment), LAST_MOMENT);
}

/** Whether a caller is reporting the end or has reported it, and the store did not have the session since. */
function isKnown(ended: KnownRecords, now: number, aliveAt = -Infinity): boolean {
  return ended.some((record) => isReadable(record) && record.dueAt > now && record.endsAt >= aliveAt);
}

/** Those that are registered with the user of their name. */
function ownOf(known: KnownRecords, names: readonly SessionName[]): readonly StoredSession[] {
  const own = new Set(names.map(boundTo));
  return known.filter(isReadable).filter((record) => own.has(boundTo(record)));
}
