import { LRUCache } from 'lru-cache';
import { chain, isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import type { EndReason } from '../../events.js';
import { beforeAnswer } from './answer-gate.js';
import { hasEnded, isCertain, isRenewed } from './decide-end.js';
import type { DecisionContext, EndCandidate, ObservedCall } from './decide-end.js';
import type { DetectorContext } from './detector-context.js';
import type { SessionRequest } from './session-request.js';

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
  readonly actors: Set<SessionRequest>;
  readonly holders: Set<SessionRequest>;
  readonly calls: ObservedCall[];
  savedBack: boolean;
  isKept: boolean;
  /** By `performance.now()`. */
  readonly at: number;
  /** Whether it is recorded: it was certain before an answer left. */
  isRecorded: boolean;
}

interface TrackerContext extends DetectorContext, Pick<DecisionContext, 'reader'> {}

const MAX_REMEMBERED = 10_000;
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
  /**
   * Those that have ended: a request that loaded one before may still believe that it has a user. With the responses of
   * the requests that took part: a socket is one request, and its user may log in and out again.
   */
  readonly #ended = new LRUCache<string, readonly WeakRef<object>[]>({ max: MAX_REMEMBERED });
  /** Ends that no request takes part in. A job may end thousands of sessions at once. */
  #ofJobs: UndecidedEnd[] = [];
  #isDecidingJobs = false;

  constructor(context: TrackerContext) {
    this.#context = context;
  }

  /** To be called before the store is. Calls that would end the same session join in. */
  begin({ sid, uid, reason, call, actors = [], holders = [] }: PossibleEnd): void {
    const key = keyOf(sid, uid);
    const known = this.#undecided.get(key);
    const end: UndecidedEnd = known ?? {
      ...{ sid, uid, reason, at: performance.now() },
      ...{ actors: new Set(), holders: new Set(), calls: [] },
      ...{ savedBack: false, isKept: false, isRecorded: false },
    };
    end.calls.push(call);
    end.isKept = false;
    for (const actor of actors) this.#take(end, actor, end.actors);
    for (const holder of holders) this.#take(end, holder, end.holders);
    if (known) return;
    if (sid !== undefined) this.#undecided.set(key, end);
    const { tasks } = this.#context;
    if (actors.length + holders.length > 0) void tasks.track(this.#decide(end));
    else {
      this.#ofJobs.push(end);
      if (!this.#isDecidingJobs) void tasks.track(this.#decideJobs());
    }
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

  /** The session was saved with this user: it may end again. */
  saved(sid: string, uid: string, request: SessionRequest | undefined): void {
    const key = keyOf(sid, uid);
    for (const response of this.#ended.get(key) ?? [])
      this.#context.recorder.allowAgain(uid, response.deref());
    this.#ended.delete(key);
    const end = this.#undecided.get(key);
    if (!end || !request) return;
    const parties = partiesOf(end);
    const others = parties.filter((party) => party !== request);
    // Where it was not known which request ended it, one that has let go of it did.
    if (parties.includes(request) && others.every(({ sessionID }) => sessionID === sid)) end.isKept = true;
    else if (!end.isKept) end.savedBack = true;
  }

  #take(end: UndecidedEnd, request: SessionRequest, requests: Set<SessionRequest>): void {
    if (requests.has(request)) return;
    requests.add(request);
    if (request.isUpgrade) return; // nobody ends its response
    const { containment, recorder } = this.#context;
    const answering = (): MaybePromise<unknown> => this.#answering(end, request);
    beforeAnswer(request.res, { containment, timeoutMs: recorder.answerTimeoutMs, answering });
  }

  /** The answer of a request that takes part is about to leave: what is certain by now is recorded. */
  #answering(end: UndecidedEnd, request: SessionRequest): MaybePromise<unknown> {
    if (end.isRecorded) return undefined;
    const userNow = this.#context.reader.userNow(request);
    if (isCertain(end, request, userNow)) {
      const concluded = this.#conclude(end);
      return isPromise(concluded) ? this.#context.tasks.track(Promise.resolve(concluded)) : concluded;
    }
    const { registryWriter, tasks } = this.#context;
    if (!registryWriter || end.sid === undefined || !isRenewed(end, request, userNow)) return undefined;
    // Or a sweep would find the old session gone, and report a user who lives on, if this process died now.
    return tasks.track(registryWriter.forget(end.sid, end.uid));
  }

  async #decideJobs(): Promise<void> {
    const { tasks } = this.#context;
    this.#isDecidingJobs = true;
    while (this.#ofJobs.length > 0) {
      await new Promise(setImmediate);
      for (const end of this.#ofJobs.splice(0, SLICE)) void tasks.track(this.#decide(end));
    }
    this.#isDecidingJobs = false;
  }

  async #decide(end: UndecidedEnd): Promise<void> {
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
    const { reader, registryWriter } = this.#context;
    let ended: boolean;
    let heard: number;
    do {
      heard = calls.length;
      // What cannot be decided counts: rather one logout too many.
      ended = await hasEnded(end, this.#context).catch(() => true);
    } while (calls.length > heard && !end.isRecorded); // one joined in meanwhile
    if (end.isRecorded) return;
    if (ended) {
      await this.#conclude(end);
      return;
    }
    this.#undecided.delete(keyOf(sid, uid));
    if (sid === undefined || !registryWriter) return;
    // The session lives, or its user has gone on with another.
    const user = async (): Promise<string | undefined> => reader.user(sid);
    if ((await user().catch(() => uid)) !== uid) await registryWriter.forget(sid, uid);
  }

  /** The session has ended: records it, if it counts. @returns a promise only when the storage needs one */
  #conclude(end: UndecidedEnd): MaybePromise<unknown> {
    const { sid, uid } = end;
    const { recorder, registryWriter } = this.#context;
    end.isRecorded = true;
    const responses = partiesOf(end).map(({ res }) => res);
    if (sid !== undefined) {
      const key = keyOf(sid, uid);
      this.#undecided.delete(key);
      const refs = responses.map((response) => new WeakRef(response));
      this.#ended.set(key, refs);
    }
    const record = (): MaybePromise<unknown> =>
      responses.length > 0 ? recorder.record(end, responses) : recorder.recordWithOthers(end);
    if (sid === undefined || !registryWriter) return record();
    // A process that dies before the end is reported leaves it to the sweep.
    const reported = (): MaybePromise<unknown> => registryWriter.reported(sid, uid);
    return chain(
      () => registryWriter.ended(sid, uid),
      ({ isFirst, isLast }) => (isFirst && isLast ? chain(record, reported) : undefined),
    );
  }
}

function partiesOf({ actors, holders }: EndCandidate): readonly SessionRequest[] {
  return [...new Set([...actors, ...holders])];
}

function keyOf(sid: string | undefined, uid: string): string {
  return sid === undefined ? ` ${uid}` : `${sid.length} ${sid}${uid}`;
}
