import { expiryOf, loadedExpiry, renewalInterval } from './expiry-dates.js';
import { LRUCache } from 'lru-cache';
import type {
  EndVerdict,
  FoundSession,
  LiveSessions,
  SessionRecord,
  EndReason,
} from '../session-end/session-end.js';
import type { Containment } from '../async/containment.js';
import { KeyedMutex } from '../async/keyed-mutex.js';
import { timeoutOrThrow, withTimeout } from '../async/with-timeout.js';

import type { LogoutRecorder } from '../logout/queue/logout-recorder.js';
import type { EndOptions, Known, SessionRegistry, UserSession, ClaimedSession } from './session-registry.js';

/** What it takes to know every live session, over all instances. */
export interface SessionIndexing {
  readonly registry: SessionRegistry;
  /** Whether an end counts only if the user has no other live session. */
  readonly lastOnly: boolean;
  /** How often to look for sessions that have expired; `undefined`: never. */
  readonly sweepMs: number | undefined;
}

export interface WriterContext {
  readonly containment: Containment;
  readonly recorder: Pick<LogoutRecorder, 'record'>;
  readonly find: FindSession;
}

/** A session as the stores have it now, as far as it has a user. Rejects when they cannot be read. */
export type FindSession = (sid: string) => Promise<readonly FoundSession[]>;

interface Written {
  readonly uid: string;
  readonly expiresAt: number;
  /** A later date is written from this much on: until then the registry counts the session as live. */
  readonly intervalMs: number;
  /** When a request has loaded or saved the session with its user, by the clock that all instances share. */
  aliveAt: number;
  /** Whether the session has had an end, or no user, since. */
  isOver: boolean;
}

const MAX_REMEMBERED = 10_000;
/** A registry that lost its sessions learns of those in use after this time. */
const REMEMBER_MS = 10 * 60_000;
/** Overlapping requests of one session may touch it in another order than they were made. */
const OVERLAP_MS = 1_000;
/** Neither a registry nor a store that does not answer may stop what waits for it. */
export const ANSWER_WITHIN_MS = 5_000;
/** A logout that waits for the registry leaves a shutdown the time to deliver it. */
const DECIDE_WITHIN_MS = 1_000;

/** Writes the sessions of this process to the registry that all instances share. Never throws. */
export class RegistryWriter implements LiveSessions {
  readonly #indexing: SessionIndexing;
  readonly #context: WriterContext;
  /** Whose sessions they are, as far as this process knows. */
  readonly #written = new LRUCache<string, Written>({ max: MAX_REMEMBERED, ttl: REMEMBER_MS });
  /** The uids of ended sessions that the registry still counts as live, and so would hide a last one. */
  readonly #unremoved = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  /** The end of a session is judged after what was written of it before, conflicts included. */
  readonly #order = new KeyedMutex();
  #isFlushing = false;

  constructor(indexing: SessionIndexing, context: WriterContext) {
    this.#indexing = indexing;
    this.#context = context;
  }

  /**
   * A request has loaded the session.
   * @param isTouched whether the store can be told that a session is used
   */
  loaded(sid: string, uid: string, session: SessionRecord, isTouched: boolean): void {
    const expiresAt = loadedExpiry(session, Date.now(), isTouched);
    const written = this.#current(sid);
    const isKnown = written?.uid === uid && expiresAt <= written.expiresAt + written.intervalMs;
    if (isKnown) {
      this.#unremoved.delete(sid);
      written.aliveAt = this.#indexing.registry.now();
    } else this.#put(sid, uid, expiresAt, uid);
  }

  /** The session was saved with this user: if it had ended before, it is not to be removed any more. */
  saved(sid: string, uid: string, session: SessionRecord): void {
    this.#put(sid, uid, expiryOf(session, Date.now()), this.#current(sid)?.uid ?? null);
  }

  /** The session was touched – by a request that may not have heard of its end. */
  touched(sid: string, uid: string, session: SessionRecord): void {
    if (this.#written.get(sid)?.isOver === true) return;
    const renew = (known: Known, liveUntil: number): Promise<void> =>
      this.#indexing.registry.renew({ sid, uid }, liveUntil, known);
    this.#write(sid, uid, expiryOf(session, Date.now()), renew);
  }

  /** The session has no user: the next user of the session is written immediately. */
  anonymous(sid: string, wasSaved = false): void {
    const written = this.#current(sid);
    this.#leave(sid);
    // Saved over a login, by a request that had loaded the session before it.
    if (wasSaved && written) void this.forget(sid, written.uid);
  }

  /** Whether an end counts only if the user has no other live session. */
  get lastOnly(): boolean {
    return this.#indexing.lastOnly;
  }

  /**
   * The session has ended. An end that is to be reported is reported by a sweep if {@link reported} does not follow.
   * @returns that it is to be reported when the registry does not answer
   */
  async ended(sid: string, uid: string): Promise<EndVerdict> {
    const written = this.#written.get(sid);
    const aliveAt = written?.uid === uid ? written.aliveAt : undefined;
    const believedUid = this.#current(sid)?.uid;
    this.#leave(sid, uid);
    const ended = this.#order.run(sid, () => this.#end({ sid, uid, aliveAt }, believedUid));
    const verdict = await withTimeout(Promise.resolve(ended), DECIDE_WITHIN_MS, undefined);
    return verdict ?? { isFirst: true, isLast: true };
  }

  /** The end is reported: no other instance is to report it. */
  async reported(sid: string, uid: string): Promise<void> {
    const { registry } = this.#indexing;
    await this.#order.run(sid, () => this.#contained(() => registry.reported({ sid, uid })));
  }

  /** The user has gone on with another session. */
  async forget(sid: string, uid: string): Promise<void> {
    this.#leave(sid, uid);
    await this.#order.run(sid, async () => {
      if (await this.#remove(sid, uid)) void this.#flush();
    });
  }

  /** Resolves when nothing is being written. */
  idle(): Promise<void> {
    return this.#order.idle();
  }

  /** Whose session it is, as far as this process knows. */
  #current(sid: string): Written | undefined {
    const written = this.#written.get(sid);
    return written?.isOver === false ? written : undefined;
  }

  #leave(sid: string, uid?: string): void {
    const written = this.#written.get(sid);
    if (written && (uid === undefined || written.uid === uid)) written.isOver = true;
  }

  async #end(
    session: UserSession & Pick<EndOptions, 'aliveAt'>,
    believedUid: string | undefined,
  ): Promise<EndVerdict | undefined> {
    const { sid, uid, aliveAt } = session;
    const { registry, lastOnly } = this.#indexing;
    const earlier = [...this.#unremoved].filter(([each, user]) => user === uid && each !== sid);
    await Promise.all(earlier.map(([each]) => this.#remove(each, uid)));
    const options = { leaseMs: REPORT_WITHIN_MS, lastOnly, aliveAt };
    const end = await this.#contained(() => registry.end(session, options));
    if (!end) {
      this.#unremoved.set(sid, uid);
      return undefined;
    }
    this.#unremoved.delete(sid);
    void this.#flush();
    if (end.registered !== undefined && end.registered !== believedUid)
      void this.#resolveNext(sid, end.registered);
    return { isFirst: end.isFirst, isLast: !end.others };
  }

  async #remove(sid: string, uid: string): Promise<boolean> {
    const isRemoved = await this.#contained(async () => {
      await this.#indexing.registry.remove({ sid, uid });
      return true;
    });
    if (isRemoved) this.#unremoved.delete(sid);
    else this.#unremoved.set(sid, uid);
    return isRemoved ?? false;
  }

  /** The registry answers again: removes what it could not remove before. */
  async #flush(): Promise<void> {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    for (const [sid, uid] of [...this.#unremoved]) {
      if (this.#unremoved.get(sid) === uid && !(await this.#remove(sid, uid))) break;
    }
    this.#isFlushing = false;
  }

  /** @param believedUid whose session it was until now, as far as this process knows */
  #put(sid: string, uid: string, expiresAt: number, believedUid: string | null): void {
    const { registry } = this.#indexing;
    const aliveAt = registry.now();
    this.#unremoved.delete(sid);
    const put = async (known: Known, liveUntil: number): Promise<void> => {
      const conflict = await registry.put({ sid, uid }, liveUntil, { ...known, believedUid, aliveAt });
      if (!conflict) return;
      const resolve = () => this.#resolve(sid, [uid, conflict.registered]);
      const isResolved = await this.#contained(resolve);
      if (!isResolved) await registry.put({ sid, uid }, liveUntil, known);
    };
    this.#write(sid, uid, expiresAt, put, aliveAt);
  }

  #write(
    sid: string,
    uid: string,
    expiresAt: number,
    write: (known: Known, liveUntil: number) => Promise<void>,
    seenAt?: number,
  ): void {
    const earlier = this.#current(sid);
    const written = earlier?.uid === uid ? earlier : undefined;
    const aliveAt = seenAt ?? written?.aliveAt ?? 0;
    if (written) {
      written.aliveAt = aliveAt;
      const gainedMs = expiresAt - written.expiresAt;
      if (gainedMs >= -OVERLAP_MS && gainedMs < written.intervalMs) return;
    }
    const intervalMs = renewalInterval(expiresAt, Date.now());
    this.#written.set(sid, { uid, expiresAt, intervalMs, aliveAt, isOver: false });
    const work = async (): Promise<true> => {
      await write({ expiresAt }, expiresAt + intervalMs);
      return true;
    };
    void this.#order.run(sid, async () => {
      if (await this.#contained(work)) void this.#flush();
      else this.#leave(sid); // tried again with the next request
    });
  }

  /**
   * Requests at several instances have changed the user of one session at the same time. The store has the user who was
   * saved last; the sessions of the others have ended, and no request knows.
   */
  async #resolve(sid: string, uids: readonly (string | undefined)[]): Promise<true> {
    const { find, recorder } = this.#context;
    const { registry, lastOnly } = this.#indexing;
    const [found] = await find(sid);
    if (this.#written.get(sid)?.uid !== found?.uid) this.#leave(sid);
    const reason: EndReason = found ? 'user-replaced' : 'user-removed';
    for (const uid of uids)
      if (uid !== undefined && uid !== found?.uid)
        await reportEnd({ sid, uid }, reason, { registry, recorder, lastOnly });
    if (found) {
      const expiresAt = loadedExpiry(found.session, Date.now(), true);
      const liveUntil = expiresAt + renewalInterval(expiresAt, Date.now());
      await registry.put({ sid, uid: found.uid }, liveUntil, { expiresAt });
    }
    return true;
  }

  /** A request waits for the verdict on its own end, not for the end of another user's. */
  async #resolveNext(sid: string, registered: string): Promise<void> {
    await this.#order.run(sid, () => this.#contained(() => this.#resolve(sid, [registered])));
  }

  async #contained<T>(work: () => Promise<T>): Promise<T | undefined> {
    const answer = (): Promise<T> => timeoutOrThrow(work(), ANSWER_WITHIN_MS);
    return this.#context.containment.run<Promise<T | undefined>>('session registry', answer, undefined);
  }
}

/** A process that has not reported an end by then has died, or its storage has not answered. */
const REPORT_WITHIN_MS = 30_000;

interface ReportContext {
  readonly registry: SessionRegistry;
  readonly recorder: Pick<LogoutRecorder, 'record'>;
  readonly lastOnly: boolean;
}

/** Reports the end of a session that no request ends, if it counts and no other instance reports it. */
export async function reportEnd(
  session: UserSession & Partial<Pick<ClaimedSession, 'claim'>>,
  reason: EndReason,
  { registry, recorder, lastOnly }: ReportContext,
): Promise<void> {
  const { uid, claim } = session;
  const options = { leaseMs: REPORT_WITHIN_MS, lastOnly, ...(claim === undefined ? {} : { claim }) };
  const { isFirst, others } = await registry.end(session, options);
  if (!isFirst || others) return;
  await recorder.record({ uid, reason, endedAt: new Date() });
  await registry.reported(session);
}
