import { LRUCache } from 'lru-cache';
import type { Containment } from '../async/containment.js';
import { KeyedMutex } from './keyed-mutex.js';
import type { FoundSession, LiveSessions } from '../session-end/session-end.js';
import type { Keyring } from '../secrets/keyring.js';
import type { DueSession, LiveSession, NewLogout, Storage } from '../storage/storage.js';
import { DAY_MS, renewalInterval } from './expiry-dates.js';

/** A session as the host's stores have it now, as far as it has a user. Rejects when they cannot be read. */
export type FindSession = (sid: string) => Promise<readonly FoundSession[]>;

/** A session in a store of the host. */
export interface UserSession {
  readonly sid: string;
  readonly uid: string;
}

interface Registered {
  readonly expiresAt: number;
  /** A later date is written from this much on: until then no sweep looks for the session. */
  readonly intervalMs: number;
  readonly writtenAt: number;
  /** When the host's store had the session with this user, by the clock of this process that never jumps. */
  aliveAt: number;
}

/**
 * Longer than any number of sessions that one process serves within {@link WRITE_AGAIN_MS}: each session that is not
 * remembered costs a write with its next request. About 300 bytes each.
 */
const MAX_REMEMBERED = 100_000;
const MAX_UNFORGOTTEN = 10_000;
/** Requests of one session that overlap may touch it in another order than they were made. */
const OVERLAP_MS = 1_000;
/** Another process may have ended the session since, and the user may have logged in again with the same one. */
const WRITE_AGAIN_MS = 60_000;

/**
 * The live sessions of all instances, for `session.expiry`. Session ids and uids are hashed and sealed: a reader of the
 * storage can neither take over a session nor learn who has one.
 */
export class LiveSessionTable implements LiveSessions {
  readonly #storage: Storage;
  readonly #keyring: Keyring;
  readonly #find: FindSession;
  readonly #containment: Containment;
  /** What this process has registered, by session and user. */
  readonly #registered = new LRUCache<string, Registered>({ max: MAX_REMEMBERED });
  /** Ended sessions that the storage did not forget: a sweep would report them once more. */
  readonly #unforgotten = new LRUCache<string, string>({ max: MAX_UNFORGOTTEN });
  /** Writes about one session keep the order of the calls. */
  readonly #order = new KeyedMutex();

  constructor(storage: Storage, keyring: Keyring, find: FindSession, containment: Containment) {
    this.#storage = storage;
    this.#keyring = keyring;
    this.#find = find;
    this.#containment = containment;
  }

  /** Registers a session that is new, and again once in a while as long as it is used. */
  register(sid: string, uid: string, expiresAt = Date.now() + DAY_MS): void {
    this.#containment.run('live sessions', () => {
      const key = keyOf(sid, uid);
      const last = this.#registered.get(key);
      const now = performance.now();
      if (last && now - last.writtenAt < WRITE_AGAIN_MS) {
        last.aliveAt = now;
        const gainedMs = expiresAt - last.expiresAt;
        if (gainedMs >= -OVERLAP_MS && gainedMs < last.intervalMs) return;
      }
      const intervalMs = renewalInterval(expiresAt, Date.now());
      const registered = { expiresAt, intervalMs, writtenAt: now, aliveAt: now };
      this.#registered.set(key, registered);
      this.#unforgotten.delete(sid);
      void this.#order.run(sid, async () => {
        const isWritten = await this.#contained(() => this.#write(sid, uid, registered));
        // Tried again with the next request.
        if (isWritten === undefined && this.#registered.get(key) === registered) this.#registered.delete(key);
      });
    });
  }

  /** The user has another session now: a sweep must not report the end of this one. */
  async forget(sid: string, uid: string): Promise<void> {
    this.#registered.delete(keyOf(sid, uid));
    await this.#order.run(sid, () => this.#endUnreported(sid, uid));
  }

  /**
   * Ends a session, and adds its logout in the same transaction.
   * @returns `false` when another process has reported this end
   */
  async end(sid: string, uid: string, logout: NewLogout): Promise<boolean> {
    const key = keyOf(sid, uid);
    const aliveAt = this.#registered.get(key)?.aliveAt ?? performance.now(); // the store was read a moment ago
    this.#registered.delete(key);
    return this.#order.run(sid, async () => {
      try {
        const aliveMs = performance.now() - aliveAt;
        const isFirst = await this.#storage.endSession(this.#rowOf({ sid, uid }), logout, undefined, aliveMs);
        await this.#forgetFormer(sid, uid);
        return isFirst;
      } catch (error) {
        this.#unforgotten.set(sid, uid);
        throw error;
      }
    });
  }

  /** @returns `undefined` when no key opens it: then nobody can look for it */
  open({ id, subject, sealed }: LiveSession): UserSession | undefined {
    const text = this.#keyring.open(sealed, 'session', id, subject);
    return text === undefined ? undefined : (JSON.parse(text) as UserSession);
  }

  /** A sweep has found a session that has expired. @returns whether this process is to report it, as it has stored */
  async endExpired(session: DueSession, logout: NewLogout): Promise<boolean> {
    return this.#storage.endSession(session, logout, session.token);
  }

  /** Resolves when nothing is being written. */
  idle(): Promise<void> {
    return this.#order.idle();
  }

  async #write(sid: string, uid: string, { expiresAt, intervalMs }: Registered): Promise<true> {
    const row = this.#rowOf({ sid, uid });
    const liveMs = expiresAt + intervalMs - Date.now();
    if (await this.#storage.registerSession(row, expiresAt, liveMs)) return true;
    // It ended a moment ago. This request may have been under way then, or the user has logged in again.
    const found = await this.#find(sid);
    if (found.some((each) => each.uid === uid))
      await this.#storage.registerSession(row, expiresAt, liveMs, true);
    else this.#registered.delete(keyOf(sid, uid));
    return true;
  }

  async #endUnreported(sid: string, uid: string): Promise<void> {
    const isForgotten = await this.#contained(async () => {
      await this.#storage.endSession(this.#rowOf({ sid, uid }), undefined);
      await this.#forgetFormer(sid, uid);
      return true;
    });
    if (isForgotten === undefined) this.#unforgotten.set(sid, uid);
  }

  /** A session that was registered before the storage key changed has a row under the former key. */
  async #forgetFormer(sid: string, uid: string): Promise<void> {
    for (const id of this.#keyring.hashes('session', sid, uid).slice(1))
      await this.#storage.endSession({ id, subject: '', sealed: '' }, undefined);
  }

  #rowOf({ sid, uid }: UserSession): LiveSession {
    const id = this.#keyring.hash('session', sid, uid);
    const subject = this.#keyring.hash('session user', uid);
    const sealed = this.#keyring.seal(JSON.stringify({ sid, uid }), 'session', id, subject);
    return { id, subject, sealed };
  }

  /** @returns `undefined` when the storage does not answer */
  async #contained<T>(work: () => Promise<T>): Promise<T | undefined> {
    const answer = await this.#containment.run<Promise<T | undefined>>('live sessions', work, undefined);
    if (answer !== undefined) this.#forgetNext();
    return answer;
  }

  /** The storage answers: forgets what it could not forget before, one session after the other. */
  #forgetNext(): void {
    for (const [sid, uid] of this.#unforgotten) {
      this.#unforgotten.delete(sid);
      void this.#order.run(sid, () => this.#endUnreported(sid, uid));
      return;
    }
  }
}

const keyOf = (sid: string, uid: string): string => JSON.stringify([sid, uid]);
