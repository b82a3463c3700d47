import { LRUCache } from 'lru-cache';
import type { Containment } from '../async/containment.js';
import { KeyedMutex } from '../async/keyed-mutex.js';
import { timeoutOrThrow, withTimeout } from '../async/with-timeout.js';
import type { FoundSession, LiveSessions } from '../session-end/session-end.js';
import { DAY_MS, renewalInterval } from './expiry-dates.js';
import type { SessionDates, SessionRegistry } from './session-registry.js';

/** A session as the stores have it now, as far as it has a user. Rejects when they cannot be read. */
export type FindSession = (sid: string) => Promise<readonly FoundSession[]>;

interface Seen {
  readonly uid: string;
  readonly expiresAt: number;
  /** A later date is written from this much on: until then no sweep looks for the session. */
  readonly intervalMs: number;
  /** When the store had it with this user, by the clock that all instances share. */
  aliveAt: number;
  /** Whether it has ended since, as far as this process knows. */
  isOver: boolean;
}

const MAX_REMEMBERED = 10_000;
/** Overlapping requests of one session may touch it in another order than they were made. */
const OVERLAP_MS = 1_000;
/** Neither a registry nor a store that does not answer may stop what waits for it. */
export const ANSWER_WITHIN_MS = 5_000;
/** A logout that waits for the registry leaves a shutdown the time to deliver it. */
const DECIDE_WITHIN_MS = 1_000;

/** Tells the registry, which all instances share, of the sessions of this process. Never throws. */
export class RegistryWriter implements LiveSessions {
  readonly #registry: SessionRegistry;
  readonly #find: FindSession;
  readonly #containment: Containment;
  readonly #seen = new LRUCache<string, Seen>({ max: MAX_REMEMBERED });
  /** Ended sessions that the registry may still have, by their user: a sweep would report them once more. */
  readonly #unremoved = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  /** What is written of a session is written in the order of the calls. */
  readonly #order = new KeyedMutex();

  constructor(registry: SessionRegistry, find: FindSession, containment: Containment) {
    this.#registry = registry;
    this.#find = find;
    this.#containment = containment;
  }

  /** Writes a session that is new, and one that is used, once in a while. */
  seen(sid: string, uid: string, expiresAt = Date.now() + DAY_MS): void {
    this.#containment.run('session registry', () => {
      this.#see(sid, uid, expiresAt);
    });
  }

  /**
   * The session has ended. A sweep reports it if this process dies before `report` is done. While the registry does not
   * answer, every end is reported.
   */
  async gone(sid: string, uid: string, report?: () => unknown): Promise<void> {
    const seen = this.#seen.get(sid);
    const aliveAt = seen?.uid === uid ? seen.aliveAt : undefined;
    if (seen?.uid === uid) seen.isOver = true;
    if (!report) {
      await this.#order.run(sid, () => this.#remove(sid, uid));
      return;
    }
    const ended = this.#order.run(sid, () => this.#end(sid, uid, aliveAt));
    const isFirst = await withTimeout(Promise.resolve(ended), DECIDE_WITHIN_MS, undefined);
    if (isFirst === false) return;
    const isReported = await this.#containment.run<Promise<boolean>>(
      'session end',
      async () => {
        await report();
        return true;
      },
      false,
    );
    if (isReported) void this.#order.run(sid, () => this.#reported(sid, uid));
  }

  /** Resolves when nothing is being written. */
  idle(): Promise<void> {
    return this.#order.idle();
  }

  #see(sid: string, uid: string, expiresAt: number): void {
    const aliveAt = this.#registry.now();
    const last = this.#seen.get(sid);
    const known = last?.uid === uid ? last : undefined;
    if (known && !known.isOver) {
      known.aliveAt = aliveAt;
      const gainedMs = expiresAt - known.expiresAt;
      if (gainedMs >= -OVERLAP_MS && gainedMs < known.intervalMs) return;
    }
    const intervalMs = renewalInterval(expiresAt, Date.now());
    const seen: Seen = { uid, expiresAt, intervalMs, aliveAt, isOver: false };
    this.#seen.set(sid, seen);
    this.#unremoved.delete(sid);
    void this.#order.run(sid, async () => {
      const isWritten = await this.#contained(() => this.#put(sid, seen, !known));
      // Tried again with the next request.
      if (!isWritten && this.#seen.get(sid) === seen && !seen.isOver) this.#seen.delete(sid);
    });
  }

  async #put(sid: string, seen: Seen, isNew: boolean): Promise<true> {
    const { uid, expiresAt, intervalMs, aliveAt } = seen;
    const dates: SessionDates = { expiresAt, dueAt: expiresAt + intervalMs };
    const session = { sid, uid };
    if (await this.#registry.put(session, dates, { aliveAt, isNew })) return true;
    // By a request that was under way when it ended, or by the next login.
    const found = await this.#find(sid);
    if (found.some((each) => each.uid === uid)) await this.#registry.put(session, dates);
    else seen.isOver = true;
    return true;
  }

  async #end(sid: string, uid: string, aliveAt: number | undefined): Promise<boolean | undefined> {
    const isFirst = await this.#contained(() => this.#registry.end({ sid, uid }, { aliveAt }));
    if (isFirst === undefined) this.#unremoved.set(sid, uid);
    return isFirst;
  }

  async #reported(sid: string, uid: string): Promise<void> {
    const isNoted = await this.#contained(async () => {
      await this.#registry.reported({ sid, uid });
      return true;
    });
    if (!isNoted) this.#unremoved.set(sid, uid);
  }

  async #remove(sid: string, uid: string): Promise<void> {
    const isRemoved = await this.#contained(async () => {
      await this.#registry.remove({ sid, uid });
      return true;
    });
    if (!isRemoved) this.#unremoved.set(sid, uid);
  }

  /** @returns `undefined` when the registry does not answer */
  async #contained<T>(work: () => Promise<T>): Promise<T | undefined> {
    const answer = (): Promise<T> => timeoutOrThrow(work(), ANSWER_WITHIN_MS);
    const answered = await this.#containment.run<Promise<T | undefined>>(
      'session registry',
      answer,
      undefined,
    );
    if (answered !== undefined) this.#removeNext();
    return answered;
  }

  /** The registry answers: removes what it could not remove before, one after the other. */
  #removeNext(): void {
    for (const [sid, uid] of this.#unremoved) {
      this.#unremoved.delete(sid);
      void this.#order.run(sid, () => this.#remove(sid, uid));
      return;
    }
  }
}
