import { randomUUID } from 'node:crypto';
import { Containment } from '../containment.js';
import type { Emit, EndReason } from '../debate-space-event.js';
import { AbortedError } from '../errors.js';
import { LEASE_MS } from '../jobs/job-queue.js';
import type { LogoutQueue } from '../logout/logout-queue.js';
import type { LogoutEntry } from '../logout/logout.js';
import { uidProblem } from '../remote/uid.js';
import type { Secret } from '../secret.js';
import { keyedHash } from '../keyed-hash.js';
import { isPromise } from '../is-promise.js';
import { Leases } from './leases.js';
import { RecentLogins } from './recent-logins.js';

/** An end that is noted in the outbox and not proven yet. */
export interface HeldEnd {
  /** It was one: deliver – unless a request with one of these responses has ended this user's session already. */
  release(responses: readonly unknown[]): MaybePromise<unknown>;
  /** It was none. */
  cancel(): MaybePromise<unknown>;
}

type MaybePromise<T> = T | PromiseLike<T>;

/** A handler that hangs must not postpone the logout of its user for ever. */
const LONGEST_HOLD_MS = 5 * 60_000;

/** Where ends are recorded. */
export type EndQueue = Pick<LogoutQueue, 'hold' | 'extend' | 'release' | 'cancel' | 'supersede'>;

export interface EndRecorderOptions {
  /** Default: 250. */
  readonly storageTimeoutMs?: number;
  /** Default: `deliver`. */
  readonly onRelogin?: 'deliver' | 'drop';
  /** Default: 30,000. */
  readonly leaseMs?: number;
  /** How long the lease of an undecided end is renewed. Default: 300,000. */
  readonly longestHoldMs?: number;
}

/** Writes ends into the outbox: held before the session ends, then released or cancelled. Nothing of it ever throws. */
export class EndRecorder {
  /** How long a host may wait for the outbox to note an end, in milliseconds. Users must always be able to log out. */
  readonly storageTimeoutMs: number;
  /** Only for those who drop what is pending for a user that logs in again. */
  readonly #logins: RecentLogins | undefined;
  readonly #outbox: EndQueue;
  readonly #hashKey: Secret;
  readonly #emit: Emit;
  readonly #containment: Containment;
  readonly #leaseMs: number;
  readonly #leases: Leases;
  #closed = false;
  /** Who was reported because of which request, known by its response: one notification per uid and request. */
  readonly #reported = new WeakMap<object, Set<string>>();

  constructor(outbox: EndQueue, hashKey: Secret, emit: Emit, options: EndRecorderOptions = {}) {
    this.storageTimeoutMs = options.storageTimeoutMs ?? 250;
    this.#logins = options.onRelogin === 'drop' ? new RecentLogins() : undefined;
    this.#outbox = outbox;
    this.#hashKey = hashKey;
    this.#emit = emit;
    this.#containment = new Containment(emit);
    this.#leaseMs = options.leaseMs ?? LEASE_MS;
    const renew = (id: string): unknown => this.#contained(() => outbox.extend(id, this.#leaseMs));
    this.#leases = new Leases(renew, this.#leaseMs, options.longestHoldMs ?? LONGEST_HOLD_MS);
  }

  /**
   * @param isOpen whether the request of this end is still open: its lease is renewed only then. Default: it always is
   * @returns `undefined` when the uid is none that the service can know. A promise only when the outbox needs one.
   */
  hold(
    uid: string,
    reason: EndReason,
    sid?: string,
    isOpen: () => boolean = () => true,
  ): MaybePromise<HeldEnd | undefined> {
    const problem = uidProblem(uid);
    if (problem !== undefined) {
      this.#emit({ type: 'fault', where: `the uid ${problem}`, error: 'InvalidUidError' });
      return undefined;
    }
    const hash = sid === undefined ? undefined : keyedHash(this.#hashKey, 'session', sid);
    const entry = { ...newEnd(), uid, reason, sessionHash: hash };
    const heldAt = performance.now();
    const held: HeldEnd = {
      release: (responses) => {
        if (!this.#claimReport(uid, responses.filter(isObject))) return held.cancel();
        this.#leases.delete(entry.id);
        const isSuperseded = this.#logins?.hasSince(uid, heldAt) ?? false;
        const settled = isSuperseded ? held.cancel() : this.#contained(() => this.#outbox.release(entry.id));
        this.#emit({ type: 'session-ended', id: entry.id, uid, reason });
        if (isSuperseded) this.#emit({ type: 'logout-superseded', uid, count: 1 });
        return settled;
      },
      cancel: () => {
        this.#leases.delete(entry.id);
        return this.#contained(() => this.#outbox.cancel(entry.id));
      },
    };
    this.#leases.add(entry.id, () => this.#containment.run('response', isOpen, false));
    const stored = this.#contained(() => this.#outbox.hold(entry, this.#leaseMs));
    return isPromise(stored) ? stored.then(() => held) : held;
  }

  /** Whether logins have to be told of. */
  get wantsLogins(): boolean {
    return this.#logins !== undefined;
  }

  /** A user has logged in: what is pending from before would close the newer debate session. */
  loggedIn(uid: string): void {
    if (!this.#logins) return;
    this.#logins.add(uid);
    void this.#supersede(uid, Date.now());
  }

  /** From now on only ends of sessions are recorded, and none is awaited for longer than its lease. */
  close(): void {
    this.#closed = true;
    this.#leases.close();
  }

  /** A logout that somebody asked for; resolves when the outbox has it, rejects when it cannot take it. */
  async request(uid: string): Promise<void> {
    if (this.#closed) {
      const details = { operation: 'logoutUser', attempts: 0, outcome: 'not-sent', retryable: true } as const;
      throw new AbortedError('the app is shutting down', details);
    }
    const entry = { ...newEnd(), uid, reason: 'requested' } as const;
    await this.#outbox.hold(entry, this.#leaseMs);
    await this.#outbox.release(entry.id);
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason: entry.reason });
  }

  async #supersede(uid: string, until: number): Promise<void> {
    await this.#contained(async () => {
      const count = await this.#outbox.supersede(uid, until);
      if (count > 0) this.#emit({ type: 'logout-superseded', uid, count });
    });
  }

  #claimReport(uid: string, responses: readonly object[]): boolean {
    if (responses.some((response) => this.#reported.get(response)?.has(uid))) return false;
    for (const response of responses) {
      this.#reported.set(response, (this.#reported.get(response) ?? new Set()).add(uid));
    }
    return true;
  }

  #contained(work: () => MaybePromise<void>): MaybePromise<unknown> {
    return this.#containment.run<unknown>('outbox', work, undefined);
  }
}

/** The id begins with the moment, so that ids sort by age. */
function newEnd(): Pick<LogoutEntry, 'id' | 'endedAt'> {
  const endedAt = Date.now();
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, endedAt };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
