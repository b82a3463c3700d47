import type { SessionEndReason } from '../events.js';
import { setTimeout as pause } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { beforeAnswer } from './answer-gate.js';
import { REMEMBERED, setsSession } from './browser-cookies.js';
import type { MaybePromise } from '../async/promises.js';
import { SLICE, type WatchContext } from './context.js';
import { mayNeverClose, RequestScope } from './request-scope.js';
import type { SessionRecord } from './session-end.js';
import type { SessionReader } from './session-reader.js';
import { hasExpired } from './session-user.js';
import { ObservedCall } from './store-calls.js';
import { verdictOn, type Shown } from './verdict.js';

export interface PossibleEnd {
  /** Absent when the store does not tell the ids of the sessions that it clears. */
  readonly sid: string | undefined;
  readonly uid: string;
  readonly reason: SessionEndReason;
  /** The store call that may end the session. */
  call: ObservedCall;
}

/** The open requests that own a session which a call may end. */
export interface Owners {
  readonly scopes: readonly RequestScope[];
  /** Whether these requests make the call. Otherwise one of them may make it, or a job. */
  readonly areSure: boolean;
}

export const NO_OWNERS: Owners = { scopes: [], areSure: true };

interface OpenEnd extends PossibleEnd {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly owners: Map<RequestScope, Ownership>;
  isReported: boolean;
}

interface Ownership {
  /** Whether the request makes the call. */
  isSure: boolean;
  /** Whether the head of the answer was sent before the call: the cookie of another session cannot reach the browser. */
  readonly isLate: boolean;
}

interface Ended {
  /** On the counter of requests. */
  readonly moment: number;
  /** Whether it was left without a report: its user continued with another session. */
  readonly isContinued: boolean;
}

/** A store that has not called back after this time is read instead. */
const CALL_TIMEOUT_MS = 25_000;
/** When a store that neither calls back nor returns a promise is read, in milliseconds after the time before. */
const READ_AGAIN_MS = [0, 50, 250, 1_000];

/**
 * Decides which sessions have ended (session-endings.md, rules 4, 5 and 9). A session that open requests own is judged at
 * their answers, with the session that each has then; one that nobody owns has ended when the store has done it.
 * The way of an end: `begin`, `#answering` for each owner, `#judge`, `#decide`, `#report`.
 */
export class PossibleEnds {
  readonly #context: WatchContext;
  readonly #reader: SessionReader;
  readonly #open = new Map<string, OpenEnd>();
  /** Ends of sessions that no request owned, until their turn. */
  readonly #unowned: PossibleEnd[] = [];
  /** A row that is removed later is no second end. */
  readonly #ended = new LRUCache<string, Ended>(REMEMBERED);

  constructor(context: WatchContext, reader: SessionReader) {
    this.#context = context;
    this.#reader = reader;
  }

  /** Whether this session has ended for this user, or may be ending. */
  concerns(sid: string, uid: string): boolean {
    if (this.#ended.size === 0 && this.#open.size === 0) return false;
    const key = keyOf(sid, uid);
    return this.#ended.has(key) || this.#open.has(key);
  }

  /** Whether this session has ended for this user. */
  hasEnded(sid: string, uid: string): boolean {
    return this.#ended.size > 0 && this.#ended.has(keyOf(sid, uid));
  }

  /**
   * The session was loaded or saved with this user, so it may end again; not by a request that was open at its end.
   * @param by the request, if there is one
   */
  lives(sid: string, uid: string, by: RequestScope | undefined): void {
    if (this.#ended.size === 0) return;
    const key = keyOf(sid, uid);
    if ((this.#ended.get(key)?.moment ?? Infinity) < (by?.since ?? Infinity)) this.#ended.delete(key);
  }

  /** A request that saves another session than its own is renewing its session, which @fastify/session destroys first. */
  renewing(scope: RequestScope): void {
    for (const { owners } of this.#open.values()) {
      const ownership = owners.get(scope);
      if (ownership) ownership.isSure = true;
    }
  }

  /** The user continues with another session: this one is over, though its row may stay in the store. */
  left(sid: string, uid: string, moment = RequestScope.moment()): void {
    const key = keyOf(sid, uid);
    if (this.#open.has(key) || this.#ended.has(key)) return;
    this.#ended.set(key, { moment, isContinued: true });
    const { liveSessions, tasks } = this.#context;
    if (liveSessions) void tasks.track(liveSessions.forget(sid, uid)); // a sweep must not find it expired
  }

  /**
   * The answer of a request has given its browser the cookie of this session again, after another answer may have replaced it:
   * without a row in the store, the user is logged out.
   */
  returned(sid: string, uid: string, by: RequestScope): void {
    const key = keyOf(sid, uid);
    const open = this.#open.get(key);
    if (open && !open.owners.has(by)) open.owners.set(by, { isSure: false, isLate: false });
    if (this.#ended.get(key)?.isContinued !== true) return;
    this.#ended.delete(key);
    const call = new ObservedCall();
    call.settle('done');
    this.begin({ sid, uid, reason: 'destroyed', call }, { scopes: [by], areSure: false });
  }

  /** Must be called before the store is. A later call that would end the same session joins. */
  begin(possible: PossibleEnd, owners: Owners): void {
    if (owners.scopes.length > 0) this.#begin(possible, owners);
    else if (this.#unowned.push(possible) === 1) void this.#context.tasks.track(this.#beginUnowned());
  }

  /** A job may end thousands of sessions in one turn of the event loop: they are looked at in slices. */
  async #beginUnowned(): Promise<void> {
    for (let next = 0; next < this.#unowned.length; next += SLICE) {
      await new Promise(setImmediate);
      for (const possible of this.#unowned.slice(next, next + SLICE)) this.#begin(possible, NO_OWNERS);
    }
    this.#unowned.length = 0;
  }

  #begin(possible: PossibleEnd, { scopes, areSure }: Owners): void {
    const key = keyOf(possible.sid, possible.uid);
    if (this.#ended.has(key)) return;
    const known = possible.sid === undefined ? undefined : this.#open.get(key);
    const end = known ?? { ...possible, at: Date.now(), owners: new Map(), isReported: false };
    for (const scope of scopes) this.#addOwner(end, scope, areSure);
    if (known?.call.outcome === 'failed') known.call = possible.call;
    if (known) return;
    this.#open.set(key, end);
    const { containment, tasks } = this.#context;
    const judge = (): Promise<void> => this.#judge(end);
    void tasks.track(Promise.resolve(containment.run<unknown>('session end', judge, undefined)));
  }

  #addOwner(end: OpenEnd, scope: RequestScope, isSure: boolean): void {
    const known = end.owners.get(scope);
    if (known) {
      known.isSure ||= isSure;
      return;
    }
    end.owners.set(scope, { isSure, isLate: scope.res.headersSent || scope.isClosed });
    const { containment, reporter } = this.#context;
    const answering = (): MaybePromise<unknown> => this.#answering(end, scope);
    beforeAnswer(scope.res, { containment, timeoutMs: reporter.answerTimeoutMs, answering });
  }

  /** The answer of an owner is about to leave: an end that is certain by now is reported first. */
  #answering(end: OpenEnd, scope: RequestScope): MaybePromise<unknown> {
    if (end.isReported || end.call.outcome !== 'done') return undefined;
    return this.#shownBy(scope, end) === 'left' ? this.#report(end) : undefined;
  }

  /** Waits until the store is done and the owners have answered, then decides. */
  async #judge(end: OpenEnd): Promise<void> {
    const { waits, liveSessions } = this.#context;
    const { sid, uid, call, owners } = end;
    if (call.outcome === undefined) await waits.within(call.settled(), CALL_TIMEOUT_MS, undefined);
    for (let awaited = 0; awaited < owners.size && !end.isReported;) {
      awaited = owners.size; // another call may add owners
      await Promise.all([...owners].map(([scope, ownership]) => this.#untilJudged(end, scope, ownership)));
    }
    const verdict = end.isReported ? undefined : await this.#decide(end);
    if (end.isReported) return;
    if (verdict === 'ended') {
      await this.#report(end);
      return;
    }
    this.#open.delete(keyOf(sid, uid));
    if (sid === undefined) return;
    if (verdict === 'continued' || (liveSessions && !(await this.#hasUser(sid, uid, true))))
      this.left(sid, uid);
    const last = [...owners.keys()].toSorted((one, other) => one.closedAt - other.closedAt).at(-1);
    if (
      last &&
      last.closedAt < Infinity &&
      last.sessionID === sid &&
      owners.get(last)?.isLate !== true &&
      setsSession(sid, last)
    )
      this.returned(sid, uid, last);
  }

  /** An unsure owner has a grace period to let go of the session. If it keeps it, a job made the call. */
  async #untilJudged(end: OpenEnd, scope: RequestScope, ownership: Ownership): Promise<void> {
    const { waits, graceMs } = this.#context;
    const answered = (scope.answered ??= this.#untilAnswered(scope));
    if (!ownership.isSure) await waits.within(answered, graceMs, undefined);
    if (ownership.isSure || scope.sessionID !== end.sid) await answered;
  }

  /**
   * Resolves when the response has closed. A stream stays open: then two looks, half a grace period apart, have to find that
   * its head, with the cookies, was sent.
   */
  async #untilAnswered(scope: RequestScope): Promise<void> {
    const { graceMs, waits, containment } = this.#context;
    const { res } = scope;
    const isOver = (): boolean =>
      containment.run('response', () => scope.isClosed && res.writableEnded, true);
    if (isOver() || waits.isClosed) return;
    await new Promise<void>((resolve) => {
      let wasSent = false;
      const look = (): void => {
        const isSent = containment.run('response', () => scope.isClosed || res.headersSent, true);
        if (isOver() || (wasSent && isSent)) answered();
        wasSent = isSent;
      };
      const timer = setInterval(look, graceMs / 2).unref();
      const answered = (): void => {
        clearInterval(timer);
        stop();
        resolve();
      };
      const stop = waits.onClose(answered);
      res.on('close', () => {
        if (isOver()) answered();
      });
      if (mayNeverClose(res)) res.on('finish', answered);
    });
  }

  /** Applies the table. What cannot be decided counts as an end: a logout too many harms less than one too few. */
  async #decide(end: OpenEnd): Promise<'ended' | 'stays' | 'continued'> {
    const { sid, uid, reason, call, owners } = end;
    const cause = sid === undefined ? 'unnamed' : reason === 'abandoned' ? 'lost cookie' : 'store call';
    const shown = await Promise.all([...owners.keys()].map((scope) => this.#confirmed(scope, end)));
    const verdict = verdictOn(cause, call.outcome, shown);
    const hasUser = (otherwise: boolean): Promise<boolean> => this.#hasUser(sid ?? '', uid, otherwise);
    switch (verdict) {
      case 'ended if stored':
        return (await hasUser(true)) ? 'ended' : 'stays';
      case 'ended if missing':
        return (await hasUser(false)) ? 'stays' : 'ended';
      case 'ended if surely missing':
        return (await hasUser(true)) ? 'stays' : 'ended';
      case 'ended when missing':
        for (const ms of READ_AGAIN_MS) {
          if (ms > 0) await pause(ms);
          if (!(await hasUser(false))) return 'ended';
        }
        return 'stays';
      default:
        return verdict;
    }
  }

  /** The row of the table in which an owner is, by its session as it is now. */
  #shownBy(scope: RequestScope, { sid, uid, owners }: OpenEnd): Shown {
    const { sessionID } = scope;
    const session = scope.session as SessionRecord | undefined;
    const hasUser =
      session !== undefined && !hasExpired(session) && this.#reader.uidOf(session, scope.native) === uid;
    const ownership = owners.get(scope);
    if (sessionID === sid && (hasUser || !ownership?.isSure)) return hasUser ? 'kept' : 'reads';
    const canReach = !ownership?.isLate && !scope.isAborted;
    return sessionID !== undefined && sessionID !== sid && hasUser && canReach ? 'continues' : 'left';
  }

  /** The same, when the owner has been answered: another session that was not stored does not continue anything. */
  async #confirmed(scope: RequestScope, end: OpenEnd): Promise<Shown> {
    const shown = this.#shownBy(scope, end);
    if (shown !== 'continues' || scope.sessionID === undefined) return shown;
    return (await this.#hasUser(scope.sessionID, end.uid, true)) ? 'continues' : 'left';
  }

  /** @param otherwise the answer when the store cannot be read */
  async #hasUser(sid: string, uid: string, otherwise: boolean): Promise<boolean> {
    const user = async (): Promise<boolean> => (await this.#reader.liveUser(sid)) === uid;
    return user().catch(() => otherwise);
  }

  #report(end: OpenEnd): MaybePromise<unknown> {
    const { sid, uid, owners, at } = end;
    const { reporter, liveSessions } = this.#context;
    const key = keyOf(sid, uid);
    end.isReported = true;
    this.#open.delete(key);
    if (sid !== undefined) this.#ended.set(key, { moment: RequestScope.moment(), isContinued: false });
    const responses = [...owners.keys()].map(({ res }) => res);
    if (liveSessions && sid !== undefined && reporter.wasReported(uid, responses, at))
      return liveSessions.forget(sid, uid);
    return reporter.report(end, responses, at);
  }
}

function keyOf(sid: string | undefined, uid: string): string {
  return sid === undefined ? ` ${uid}` : `${sid.length} ${sid}${uid}`;
}
