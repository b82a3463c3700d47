import { setTimeout as pause } from 'node:timers/promises';
import type { MaybePromise } from './containment.js';
import type { WatchContext } from './context.js';
import { sessionLeftBy, type BrowserMoves } from './browser-cookies.js';
import type { SessionRecord } from './session-end.js';
import type { SessionRequest } from './session-request.js';

/** How a store's call ended; `silent` when the store said nothing. */
export type StoreOutcome = 'done' | 'failed' | 'silent';

/** A call that may end a session, from before it starts until the store has said how it ended. */
export class ObservedCall {
  outcome: StoreOutcome | undefined;
  #over: (() => void)[] | undefined;

  /** The first outcome stands. */
  end(outcome: StoreOutcome): void {
    this.outcome ??= outcome;
    for (const over of this.#over ?? []) over();
  }

  /** Resolves when `outcome` is there. A promise for those alone that wait: a job may end thousands of sessions at once. */
  async over(): Promise<void> {
    if (this.outcome === undefined) await new Promise<void>((resolve) => (this.#over ??= []).push(resolve));
  }
}

/** A session that may be ending for its user. */
export interface EndCandidate {
  /** Absent when the store does not tell the ids of the sessions it clears. */
  readonly sid: string | undefined;
  readonly uid: string;
  /** The requests that are ending it. */
  readonly actors: readonly SessionRequest[];
  /** The requests that have it while somebody ends it at the store: a job, or one of them. */
  readonly holders: readonly SessionRequest[];
  readonly calls: readonly ObservedCall[];
  /** As a request that does not take part has saved the ended session back: the user wanted to leave. */
  readonly savedBack: SessionRecord | undefined;
  /** Whether a request that takes part has saved the session with its user again: then others may save it as well. */
  readonly isKept: boolean;
}

export interface DecisionContext extends Pick<WatchContext, 'graceMs' | 'waits' | 'containment'> {
  readonly reader: {
    /** The user of a session, as the store has it now. Throws or rejects when the store does not answer in time. */
    user(sid: string): MaybePromise<string | undefined>;
    /** The user of the session that a request has now, in memory. */
    userNow(request: SessionRequest): string | undefined;
  };
  readonly moves: Pick<BrowserMoves, 'after'>;
}

/** A store that has not called back by then is asked. */
export const CALL_TIMEOUT_MS = 25_000;
/** When a store that has said nothing is asked whether it is done, in milliseconds after the time before. */
const ASK_AGAIN_MS = [0, 50, 250, 1_000];

/**
 * Whether a session has ended for its user (session-endings.md, rules 2 to 4): decided when the store is done and the
 * responses are closed, by asking the store whether the same browser still gets the same user.
 */
export async function hasEnded(end: EndCandidate, context: DecisionContext): Promise<boolean> {
  if (end.calls.some(({ outcome }) => outcome === undefined)) {
    const over = Promise.all(end.calls.map((call) => call.over()));
    await context.waits.within(over, CALL_TIMEOUT_MS, undefined);
  }
  const actors = await actorsOf(end, context);
  if (actors.length === 0) return isGone(end, end.holders, context);
  // If one request has logged the browser out while another is still running, wait: the other may be renewing the session.
  const open = new Map<SessionRequest, Promise<unknown>>();
  for (const actor of actors) {
    const closed = waitForResponseClose(actor, context).then(() => open.delete(actor));
    open.set(actor, closed);
  }
  const closed = (): SessionRequest[] => actors.filter((actor) => !open.has(actor));
  while (open.size > 0) {
    await Promise.race(open.values());
    if (open.size === 0 || !(await isGone(end, closed(), context))) continue;
    await context.waits.within(Promise.all(open.values()), context.graceMs, undefined);
    if (await isGone(end, closed(), context)) return true;
  }
  return isGone(end, actors, context);
}

/**
 * The requests that are ending the session. Where none is known, those that have it get a grace to show that they did:
 * a job that ends a session does not wait for the requests of its user.
 */
async function actorsOf(end: EndCandidate, context: DecisionContext): Promise<readonly SessionRequest[]> {
  const { actors, holders } = end;
  if (actors.length > 0 || holders.length === 0) return endingRequests(end);
  const closed = Promise.all(holders.map((holder) => waitForResponseClose(holder, context)));
  await context.waits.within(closed, context.graceMs, undefined);
  return endingRequests(end).filter((holder) => !holder.isFinished);
}

/** The requests that are ending the session, as far as that is known: also those that do not have it any more. */
function endingRequests({ actors, holders, sid }: EndCandidate): readonly SessionRequest[] {
  const others = holders.filter((holder) => holder.hasLetGo || holder.sessionID !== sid);
  return [...new Set([...actors, ...others])];
}

/**
 * Whether the session has ended for its user as surely as it ever will, although the answer of this request has not left:
 * the store has done it, and no other request is ending the session.
 * @param userNow the user of the session that the request has now
 */
export function isCertain(end: EndCandidate, request: SessionRequest, userNow: string | undefined): boolean {
  if (!isDone(end) || end.isKept || end.sid === undefined || userNow === end.uid) return false;
  const ending = endingRequests(end);
  return ending.length === 1 && ending[0] === request;
}

/** Whether the store has ended the session, and the request goes on with another session of the same user. */
export function isRenewed(end: EndCandidate, request: SessionRequest, userNow: string | undefined): boolean {
  return isDone(end) && userNow === end.uid && request.sessionID !== end.sid;
}

/** Whether the store has done what ends the session. */
export function isDone({ calls }: EndCandidate): boolean {
  const outcomes = calls.map(({ outcome }) => outcome);
  return outcomes.includes('done') && !outcomes.some((each) => each === undefined || each === 'silent');
}

/** @param requests those that have had the session, as far as their responses are closed */
async function isGone(
  end: EndCandidate,
  requests: readonly SessionRequest[],
  { reader, waits, moves }: DecisionContext,
): Promise<boolean> {
  const { sid, uid, calls } = end;
  const hasUser = async (session: string): Promise<boolean> => (await reader.user(session)) === uid;
  const hasInMemory = (session: string): boolean =>
    requests.some((request) => request.sessionID === session && reader.userNow(request) === uid);
  const outcomes = calls.map(({ outcome }) => outcome);
  // A failure may have come after the effect. Only a store that says so has ended the session.
  if (outcomes.every((outcome) => outcome === 'failed'))
    return sid !== undefined && !(await hasUser(sid).catch(() => true));
  // The store may still be at it: the session that is ending is looked up as well.
  const isUnsure = outcomes.some((outcome) => outcome === undefined || outcome === 'silent');
  /** The session by which the browser still gets this user. */
  const stillLoggedIn = async (): Promise<string | undefined> => {
    const own = sessionLeftBy(requests, sid);
    // Where these have left the browser as it was, another one may have renewed its session.
    const moved = sid !== undefined && own === sid ? moves.after(sid) : undefined;
    const sids = new Set(requests.length > 0 ? [moved ? moved.sid : own] : []);
    if (isUnsure) sids.add(sid);
    if (end.savedBack) sids.delete(sid);
    for (const left of sids) {
      // Of a store that cannot be asked there is what its calls said: the session has ended. Of the one that the request
      // goes on with there is what the request has in memory: a user who has renewed the session has not left.
      if (left !== undefined && (await hasUser(left).catch(() => left !== sid && hasInMemory(left))))
        return left;
    }
    return undefined;
  };
  let still: string | undefined;
  for (const ms of isUnsure ? ASK_AGAIN_MS : [0]) {
    if (ms > 0) await pause(ms);
    still = await stillLoggedIn();
    if (still === undefined) return true;
    // The browser goes on with another session: what becomes of that is no matter of this end.
    if (still !== sid) return false;
  }
  // Cut off by the shutdown: rather one logout too many.
  return still === sid && waits.isClosed && outcomes.includes(undefined);
}

/**
 * Waits until nothing that a request still does can change who its browser is logged in as: its response is closed
 * – `close`, because aborted ones never `finish` –, or has been past the point of no return for a grace period. Past it
 * are a stream whose head, with its cookies, has left, a WebSocket, and an aborted request whose handler may still run.
 */
async function waitForResponseClose(request: SessionRequest, context: DecisionContext): Promise<void> {
  const { graceMs, waits, containment } = context;
  if (request.isFinished || waits.isClosed) return;
  await new Promise<void>((resolve) => {
    let wasCommitted = false;
    const isSettled = (): boolean => {
      if (request.isFinished || (wasCommitted && request.isCommitted)) return true;
      wasCommitted = request.isCommitted;
      return false;
    };
    const look = (): void => {
      if (containment.run('response', isSettled, true)) done();
    };
    // Looking twice in a grace period makes it between half of one and a whole one.
    const timer = setInterval(look, graceMs / 2).unref();
    const done = (): void => {
      clearInterval(timer);
      stop();
      resolve();
    };
    const closed = (): void => {
      if (request.isFinished) done();
    };
    const stop = waits.onClose(done);
    request.onClose({ containment, closed }); // may be heard of at once
  });
}
