import { LRUCache } from 'lru-cache';
import { chain, isPromise, type MaybePromise } from './containment.js';
import type { EndReason, SessionRecord } from './session-end.js';
import { beforeAnswer } from './answer-gate.js';
import { REMEMBERED, type BrowserMoves } from './browser-cookies.js';
import {
  CALL_TIMEOUT_MS,
  hasEnded,
  isCertain,
  isDone,
  isRenewed,
  ObservedCall,
  type DecisionContext,
  type EndCandidate,
} from './decide-end.js';
import type { WatchContext } from './context.js';
import { SessionRequest } from './session-request.js';
import { SuspectedEnds, type SuspectedGroup, type Suspects } from './suspected-ends.js';

/** The requests that have to do with an end: those that are ending the session, or those that only have it. */
export type Parties = Partial<Readonly<Record<'actors' | 'holders', readonly SessionRequest[]>>>;

/** A call of the store that may end a session. */
export interface PossibleEnd extends Parties {
  /** Absent when the store does not tell the ids of the sessions it clears. */
  readonly sid: string | undefined;
  readonly uid: string;
  readonly reason: EndReason;
  readonly call: ObservedCall;
}

interface UndecidedEnd extends EndCandidate {
  readonly reason: EndReason;
  actors: readonly SessionRequest[];
  holders: readonly SessionRequest[];
  readonly calls: ObservedCall[];
  savedBack: SessionRecord | undefined;
  isKept: boolean;
  /** By `performance.now()`. */
  readonly at: number;
  /** Whether it is reported: it was certain before an answer left. */
  isReported: boolean;
  group: SuspectedGroup<UndecidedEnd> | undefined;
}

interface Ended {
  /** When, as requests count. */
  readonly at: number;
  /** Whether the store may still have it: its browser has left it there. */
  isLeft: boolean;
}

interface TrackerContext extends WatchContext, Pick<DecisionContext, 'reader'> {
  readonly moves: BrowserMoves;
}

/** After this time a certain end is recorded though its request has not been answered: a handler may hang. */
const UNANSWERED_MS = 5 * 60_000;
/** How many ends that no request takes part in are looked at in one turn of the event loop. */
const SLICE = 100;

/**
 * The sessions that are ending, each followed until its verdict (session-endings.md, rules 4 and 5): before the answer of
 * the request that ends it, where that is certain, or else when the answer has left.
 */
export class EndTracker {
  readonly #context: TrackerContext;
  readonly #undecided = new Map<string, UndecidedEnd>();
  /** Those that have ended: another request may still believe that one has a user. */
  readonly #ended = new LRUCache<string, Ended>(REMEMBERED);
  readonly #suspected: SuspectedEnds<UndecidedEnd>;
  /** Ends that no request takes part in. A job may end thousands of sessions at once. */
  #ofJobs: UndecidedEnd[] = [];
  #isDecidingJobs = false;

  constructor(context: TrackerContext) {
    this.#context = context;
    this.#suspected = new SuspectedEnds(context, this.#judge.bind(this));
  }

  /** To be called before the store is. Calls that would end the same session join in. @param suspects not for known actors */
  begin({ sid, uid, reason, call, actors = [], holders = [] }: PossibleEnd, suspects?: Suspects): void {
    const key = keyOf(sid, uid);
    const known = this.#undecided.get(key);
    const end = known ?? undecided(sid, uid, reason);
    end.calls.push(call);
    end.isKept = false;
    for (const actor of actors) this.#take(end, actor, 'actors');
    for (const holder of holders) this.#take(end, holder, 'holders');
    if (known) return;
    if (sid !== undefined) this.#undecided.set(key, end);
    if (suspects && suspects.requests.length > 0 && !this.#context.waits.isClosed)
      end.group = this.#suspected.add(end, suspects);
    else if (actors.length + holders.length > 0) void this.#context.tasks.track(this.#decide(end));
    else this.#decideLater([end]);
  }

  /** A request that has not loaded the session, though its browser has sent it, logs its user in anew. */
  join(sid: string, uid: string, request: SessionRequest): void {
    const end = this.#undecided.get(keyOf(sid, uid));
    if (end) this.#joins(end, request);
  }

  #joins(end: UndecidedEnd, request: SessionRequest): void {
    if (end.actors.includes(request)) return;
    const call = new ObservedCall();
    call.end('done');
    end.calls.push(call); // has the verdict look again
    this.#take(end, request, 'actors');
  }

  /** A request has loaded the session with this user: if it came after the end, another instance has saved the session again. */
  loaded(sid: string, uid: string, request: SessionRequest): void {
    const key = keyOf(sid, uid);
    if ((this.#ended.get(key)?.at ?? Infinity) < request.since) this.#ended.delete(key);
  }

  /** The store has the session with this user: unless its browser has left it there, another instance has saved it again. */
  found(sid: string, uid: string): void {
    const key = keyOf(sid, uid);
    if (this.#ended.get(key)?.isLeft === false) this.#ended.delete(key);
  }

  /** Whether this session has ended for this user, and was not saved with them again. */
  hasEnded(sid: string, uid: string): boolean {
    return this.#ended.has(keyOf(sid, uid));
  }

  /** Whether this session has ended for this user, or may be ending. */
  concerns(sid: string, uid: string): boolean {
    if (this.#ended.size === 0 && this.#undecided.size === 0) return false;
    const key = keyOf(sid, uid);
    return this.#ended.has(key) || this.#undecided.has(key);
  }

  /**
   * The session was saved with this user: it may end again. What a slow request saves back after its browser has gone on
   * stays ended until a browser is seen with it.
   */
  saved(sid: string, uid: string, session: SessionRecord, request: SessionRequest | undefined): void {
    const key = keyOf(sid, uid);
    const ended = this.#ended.get(key);
    if (ended && this.#context.moves.isBehind(sid, request)) ended.isLeft = true;
    else this.#ended.delete(key);
    const end = this.#undecided.get(key);
    if (!end || !request) return;
    const parties = partiesOf(end);
    const others = parties.filter((party) => party !== request);
    // Where it was not known which request ended it, one that has let go of it did.
    if (parties.includes(request) && others.every(({ sessionID }) => sessionID === sid)) end.isKept = true;
    else if (!end.isKept) end.savedBack = session;
  }

  #take(end: UndecidedEnd, request: SessionRequest, as: keyof Parties): void {
    if (end[as].includes(request)) return;
    end[as] = [...end[as], request];
    if (request.isUpgrade) return; // nobody ends its response
    const { containment, reporter } = this.#context;
    const answering = (): MaybePromise<unknown> => this.#answering(end, request);
    beforeAnswer(request.res, { containment, timeoutMs: reporter.answerTimeoutMs, answering });
  }

  /** The answer of a request that takes part is about to leave: what is certain by now is recorded. */
  #answering(end: UndecidedEnd, request: SessionRequest): MaybePromise<unknown> {
    if (end.isReported) return undefined;
    const { reader, moves } = this.#context;
    const userNow = reader.userNow(request);
    const hasMoved = end.sid !== undefined && moves.after(end.sid) !== undefined;
    for (const other of this.#renewing(end)) this.#joins(end, other);
    if (!hasMoved && isCertain(end, request, userNow)) {
      const concluded = this.#conclude(end);
      return isPromise(concluded) ? this.#context.tasks.track(Promise.resolve(concluded)) : concluded;
    }
    const { liveSessions, tasks } = this.#context;
    if (!liveSessions || end.sid === undefined || !isRenewed(end, request, userNow)) return undefined;
    // Or a sweep would find the old session gone, and report a user who lives on, if this process died now.
    return tasks.track(liveSessions.forget(end.sid, end.uid));
  }

  /** Requests that the browser has sent with this session and that have logged its user in with another, not saved yet. */
  #renewing({ sid, uid }: UndecidedEnd): readonly SessionRequest[] {
    if (sid === undefined) return [];
    const { openRequests, reader } = this.#context;
    const isRenewing = (request: SessionRequest): boolean =>
      request.sessionID !== sid && !!request.cookieHeader?.includes(sid) && reader.userNow(request) === uid;
    return openRequests.unanswered().filter(isRenewing);
  }

  /** @returns a promise when the storage needs one for those that are certain; the others are decided later */
  #judge(ends: readonly UndecidedEnd[]): MaybePromise<unknown> {
    const isOfJob = (end: UndecidedEnd): boolean => partiesOf(end).length === 0 && isDone(end);
    for (const end of ends) if (!isOfJob(end)) void this.#context.tasks.track(this.#decide(end));
    const certain = ends.filter(isOfJob);
    if (certain.length > SLICE) {
      this.#decideLater(certain);
      return undefined;
    }
    const concluded = certain.map((end) => this.#conclude(end)).filter(isPromise);
    return concluded.length > 0 ? this.#context.tasks.track(Promise.all(concluded)) : undefined;
  }

  #decideLater(ends: readonly UndecidedEnd[]): void {
    for (const end of ends) this.#ofJobs.push(end);
    if (!this.#isDecidingJobs) void this.#context.tasks.track(this.#decideJobs());
  }

  async #decideJobs(): Promise<void> {
    this.#isDecidingJobs = true;
    while (this.#ofJobs.length > 0) {
      await new Promise(setImmediate);
      const ends = this.#ofJobs.splice(0, SLICE);
      this.#context.containment.run('session end', () => this.#judge(ends));
    }
    this.#isDecidingJobs = false;
  }

  async #decide(end: UndecidedEnd): Promise<void> {
    if (end.isReported) return;
    const unanswered = (): void => {
      for (const request of partiesOf(end))
        this.#context.containment.run('response', () => this.#answering(end, request));
    };
    const timer = setTimeout(unanswered, UNANSWERED_MS).unref();
    await this.#untilDecided(end);
    clearTimeout(timer);
  }

  async #untilDecided(end: UndecidedEnd): Promise<void> {
    const { sid, uid, calls } = end;
    const { liveSessions } = this.#context;
    let ended: boolean;
    let heard: number;
    do {
      heard = calls.length;
      // What cannot be decided counts: rather one logout too many.
      ended = await hasEnded(end, this.#context).catch(() => true);
    } while (calls.length > heard && !end.isReported); // one joined in meanwhile
    if (end.isReported) return;
    if (ended) {
      await this.#conclude(end);
      return;
    }
    const key = keyOf(sid, uid);
    this.#undecided.delete(key);
    if (sid === undefined) return;
    if (this.#isBehind(end)) {
      // Its user has gone on with another session: no job that removes the row logs anybody out.
      this.#ended.set(key, { at: SessionRequest.moment(), isLeft: true });
      await liveSessions?.forget(sid, uid);
      return;
    }
    await this.#forgetGone(sid, uid);
  }

  /** The session was saved while another call ended it: a database may have run the two in either order. */
  async confirm(sid: string, uid: string, other: ObservedCall): Promise<void> {
    if (!this.#context.liveSessions) return;
    await this.#context.waits.within(other.over(), CALL_TIMEOUT_MS, undefined);
    await this.#forgetGone(sid, uid);
  }

  /** A session that the store does not have with this user is not live. */
  async #forgetGone(sid: string, uid: string): Promise<void> {
    const { reader, liveSessions } = this.#context;
    if (!liveSessions) return;
    const user = async (): Promise<string | undefined> => reader.user(sid);
    if ((await user().catch(() => uid)) !== uid) await liveSessions.forget(sid, uid);
  }

  /** The session has ended: records it, if it counts. @returns a promise only when the storage needs one */
  #conclude(end: UndecidedEnd): MaybePromise<unknown> {
    const { sid, uid } = end;
    const { reporter, liveSessions, tasks } = this.#context;
    end.isReported = true;
    const causes = causesOf(end);
    if (sid !== undefined) {
      const key = keyOf(sid, uid);
      this.#undecided.delete(key);
      this.#ended.set(key, {
        at: SessionRequest.moment(),
        isLeft: end.reason === 'abandoned' || this.#isBehind(end),
      });
    }
    // That a browser has left its session is seen when the report of its request may have been made.
    const since = end.reason === 'abandoned' ? 0 : end.at;
    const report = (): MaybePromise<unknown> => reporter.report(end, causes, since);
    if (sid === undefined || !liveSessions) return report();
    // A process that dies before the end is reported leaves it to the sweep.
    const reported = (): MaybePromise<unknown> => liveSessions.reported(sid, uid);
    const isLoggedIn = liveSessions.lastOnly && this.#isLoggedIn(end);
    const verdict = (): MaybePromise<unknown> =>
      chain(
        () => liveSessions.ended(sid, uid),
        ({ isFirst, isLast }) => {
          if (!isFirst || !isLast) return undefined;
          return isLoggedIn ? reported() : chain(report, reported);
        },
      );
    const { savedBack } = end;
    if (!savedBack) return verdict();
    return chain(verdict, () => void tasks.track(this.#revive(end, savedBack)));
  }

  /** Whether the browser has gone on with another session, or will by the answer that is about to leave. */
  #isBehind(end: UndecidedEnd): boolean {
    const { sid } = end;
    if (sid !== undefined && this.#context.moves.after(sid)) return true;
    return partiesOf(end).some((party) => !party.hasLetGo && party.sessionID !== sid);
  }

  /** Another request has saved the session back: it may end again. */
  async #revive(end: UndecidedEnd, session: SessionRecord): Promise<void> {
    const { sid, uid } = end;
    const { reader, liveSessions } = this.#context;
    if (sid === undefined || this.#isBehind(end)) return;
    const user = async (): Promise<string | undefined> => reader.user(sid); // it may have been saved just before
    if ((await user().catch(() => undefined)) === uid) liveSessions?.saved(sid, uid, session);
  }

  /** Whether a suspect has the user in a session that may not be saved yet, and has not ended since the request came. */
  #isLoggedIn({ sid, uid, group }: UndecidedEnd): boolean {
    const { reader } = this.#context;
    const has = (request: SessionRequest): boolean =>
      request.sessionID !== undefined &&
      request.sessionID !== sid &&
      reader.userNow(request) === uid &&
      !((this.#ended.get(keyOf(request.sessionID, uid))?.at ?? 0) >= request.since);
    return [...(group?.suspects ?? [])].some(has);
  }
}

const NOBODY: readonly SessionRequest[] = [];

/** No spreads, and no array for nobody: a job may end thousands of sessions at once. */
function undecided(sid: string | undefined, uid: string, reason: EndReason): UndecidedEnd {
  return {
    sid,
    uid,
    reason,
    at: performance.now(),
    actors: NOBODY,
    holders: NOBODY,
    calls: [],
    savedBack: undefined,
    isKept: false,
    isReported: false,
    group: undefined,
  };
}

/** What is reported once per user: the responses of the requests that may have caused the end, or all of its group. */
function causesOf(end: UndecidedEnd): readonly object[] {
  const { group } = end;
  const requests = [...partiesOf(end), ...(group?.areOfUser ? group.suspects : [])];
  return [...requests.map(({ res }) => res), ...(group && !group.areOfUser ? [group] : [])];
}

function partiesOf({ actors, holders }: EndCandidate): readonly SessionRequest[] {
  return holders.length === 0 ? actors : [...new Set([...actors, ...holders])];
}

function keyOf(sid: string | undefined, uid: string): string {
  return sid === undefined ? ` ${uid}` : `${sid.length} ${sid}${uid}`;
}
