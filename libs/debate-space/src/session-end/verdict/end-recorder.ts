import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { chain, type MaybePromise } from '../../async/maybe-promise.js';
import { Containment } from '../../async/containment.js';
import type { Emit, EndReason } from '../../events.js';
import { AbortedError } from '../../errors.js';
import { LEASE_MS } from '../../jobs/job-queue.js';
import type { LogoutEntry } from '../../logout/logout.js';
import type { LogoutQueue } from '../../logout/queue/logout-queue.js';
import { validateUid } from '../../uid.js';
import { isObject } from '../is-object.js';

/** An end that is held in the storage and not proven yet. */
export interface HeldEnd {
  /** It is proven: deliver – unless a request with one of these responses has ended this user's session already. */
  release(responses: readonly unknown[]): MaybePromise<unknown>;
  /** It was none. */
  cancel(): MaybePromise<unknown>;
}

/** A handler that hangs must not postpone the logout of its user for ever. */
const MAX_HOLD_MS = 5 * 60_000;
const MAX_REMEMBERED = 10_000;

export type EndQueue = Pick<LogoutQueue, 'hold' | 'extend' | 'release' | 'cancel' | 'supersede'>;

export interface EndRecorderOptions {
  /** @defaultValue 250 */
  readonly storageTimeoutMs?: number;
  /** Whether what is stored outlives this process. @defaultValue true */
  readonly durable?: boolean;
  /** @defaultValue `'deliver'` */
  readonly onRelogin?: 'deliver' | 'drop';
  /** @defaultValue 30,000 */
  readonly leaseMs?: number;
  /** How long the lease of an undecided end is renewed. @defaultValue 300,000 */
  readonly maxHoldMs?: number;
}

/** An end of which nobody knows yet whether it is one. */
interface UndecidedEnd {
  readonly entry: LogoutEntry;
  /** By the monotonic clock: that of the machine may be put back. */
  readonly heldAt: number;
  /** Whether its request may still decide it. */
  readonly isOpen: () => boolean;
  /** Whether the queue has been asked to hold it. */
  isStored: boolean;
}

/** Writes ends into the storage: held before the session ends, then released or canceled. Only `request` rejects. */
export class EndRecorder {
  /** How long a host may wait for the storage to hold an end, in milliseconds. Users must always be able to log out. */
  readonly storageTimeoutMs: number;
  readonly #queue: EndQueue;
  readonly #emit: Emit;
  readonly #containment: Containment;
  readonly #leaseMs: number;
  readonly #maxHoldMs: number;
  readonly #durable: boolean;
  /** Those whose leases are renewed. */
  readonly #undecided = new Set<UndecidedEnd>();
  readonly #timer: NodeJS.Timeout;
  #isClosed = false;
  /** Who was reported because of which request, known by its response: one notification per uid and request. */
  readonly #reported = new WeakMap<object, Set<string>>();
  /** For `logout.onRelogin: 'drop'`, when users logged in last: an end may be proven after the next login. */
  readonly #loginAt: LRUCache<string, number> | undefined;

  constructor(queue: EndQueue, emit: Emit, options: EndRecorderOptions = {}) {
    this.storageTimeoutMs = options.storageTimeoutMs ?? 250;
    this.#queue = queue;
    this.#emit = emit;
    this.#containment = new Containment(emit);
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    this.#maxHoldMs = options.maxHoldMs ?? MAX_HOLD_MS;
    this.#durable = options.durable ?? true;
    this.#timer = setInterval(this.#renewLeases.bind(this), this.#leaseMs / 3).unref();
    if (options.onRelogin === 'drop') this.#loginAt = new LRUCache({ max: MAX_REMEMBERED });
  }

  /**
   * Holds an end and renews its lease until it is decided. Where a hold would be lost with the process all the same, no
   * response waits for it: it is made with the verdict, or as soon as leases are renewed.
   * @param isOpen whether the request of this end is still open: the lease is renewed only then
   * @param at when it happened, by `performance.now()`
   * @returns `undefined` when the uid is none that the service can know. A promise only when the storage needs one.
   */
  hold(
    uid: string,
    reason: EndReason,
    isOpen: () => boolean = () => true,
    at = performance.now(),
  ): MaybePromise<HeldEnd | undefined> {
    const problem = validateUid(uid);
    if (problem !== undefined) {
      this.#emit({ type: 'fault', where: `the uid ${problem}`, error: 'InvalidUidError' });
      return undefined;
    }
    const end: UndecidedEnd = {
      entry: newEntry(uid, reason, at),
      heldAt: at,
      isOpen,
      isStored: false,
    };
    const held: HeldEnd = {
      release: (responses) => {
        if (!this.#claimReport(uid, responses.filter(isObject))) return held.cancel();
        const isSuperseded = (this.#loginAt?.get(uid) ?? -Infinity) > end.heldAt;
        const { id } = end.entry;
        const release = (): MaybePromise<void> =>
          chain(
            () => this.#store(end),
            () => this.#queue.release(id),
          );
        const settled = isSuperseded ? held.cancel() : this.#settle(end, release);
        this.#emit({ type: 'session-ended', id, uid, reason });
        if (isSuperseded) this.#emit({ type: 'logout-superseded', uid, count: 1 });
        return settled;
      },
      cancel: () => this.#settle(end, () => (end.isStored ? this.#queue.cancel(end.entry.id) : undefined)),
    };
    this.#undecided.add(end);
    if (!this.#durable) return held;
    return chain(
      () => this.#store(end),
      () => held,
    );
  }

  /** The session that the request with this response has ended has its user again: it may end it again. */
  rearm(uid: string, response: object | undefined): void {
    if (response) this.#reported.get(response)?.delete(uid);
  }

  /** Whether `loggedIn` has an effect. */
  get wantsLogins(): boolean {
    return this.#loginAt !== undefined;
  }

  /**
   * A user has logged in: what is pending from before would close the newer debate session.
   * @param at when, by `performance.now()`; it may be known late, after the next end
   */
  loggedIn(uid: string, at = performance.now()): void {
    if (!this.#loginAt) return;
    this.#loginAt.set(uid, Math.max(at, this.#loginAt.get(uid) ?? at));
    const supersede = async (): Promise<void> => {
      const count = await this.#queue.supersede(uid, dateOf(at));
      if (count > 0) this.#emit({ type: 'logout-superseded', uid, count });
    };
    void this.#contained(supersede);
  }

  /** From now on only ends of sessions are recorded, and no lease is renewed. */
  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    for (const end of this.#undecided) void this.#store(end);
  }

  /** A logout that the host requests; resolves when the storage has it, rejects when the storage cannot take it. */
  async request(uid: string): Promise<void> {
    if (this.#isClosed) {
      const details = { operation: 'logoutUser', attempts: 0, outcome: 'not-sent', retryable: true } as const;
      throw new AbortedError('the app is shutting down', details);
    }
    const entry = newEntry(uid, 'requested');
    await this.#queue.hold(entry, this.#leaseMs);
    await this.#queue.release(entry.id);
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason: entry.reason });
  }

  /** Renews the leases of undecided ends, but not without end: a hold that nobody settles becomes due. */
  #renewLeases(): void {
    const now = performance.now();
    for (const end of this.#undecided) {
      const age = now - end.heldAt;
      // Most ends are decided by the next time; what is younger has its whole lease then.
      if (age < this.#leaseMs / 3) continue;
      if (!end.isStored) void this.#store(end);
      if (age < this.#maxHoldMs && this.#containment.run('response', end.isOpen, false))
        void this.#contained(() => this.#queue.extend(end.entry.id, this.#leaseMs));
      else this.#undecided.delete(end);
    }
  }

  /** @returns resolves when the queue holds it, or cannot */
  #store(end: UndecidedEnd): MaybePromise<unknown> {
    if (end.isStored) return undefined;
    end.isStored = true;
    return this.#contained(() => this.#queue.hold(end.entry, this.#leaseMs));
  }

  #settle(end: UndecidedEnd, work: () => MaybePromise<void>): MaybePromise<unknown> {
    this.#undecided.delete(end);
    return this.#contained(work);
  }

  #claimReport(uid: string, responses: readonly object[]): boolean {
    if (responses.some((response) => this.#reported.get(response)?.has(uid))) return false;
    for (const response of responses)
      this.#reported.set(response, (this.#reported.get(response) ?? new Set()).add(uid));
    return true;
  }

  #contained(work: () => MaybePromise<void>): MaybePromise<unknown> {
    return this.#containment.run<unknown>('outbox', work, undefined);
  }
}

/** The id begins with the moment, so that ids sort by age. */
function newEntry(uid: string, reason: EndReason, at = performance.now()): LogoutEntry {
  const endedAt = dateOf(at);
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, uid, reason, endedAt };
}

/** @param at by `performance.now()` @returns by `Date.now()` */
function dateOf(at: number): number {
  return Math.round(Date.now() - (performance.now() - at));
}
