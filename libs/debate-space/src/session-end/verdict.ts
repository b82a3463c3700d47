import { setTimeout as pause } from 'node:timers/promises';
import { timeoutOrThrow, withTimeout } from '../with-timeout.js';
import { orAborted } from '../linked-signal.js';
import type { SessionRequest } from './session-request.js';
import { settled, type SettleOptions } from './settled.js';
import type { StoreOutcome } from './store-call.js';

/** A call of the store that may end a session. */
export interface EndingCall {
  /** Resolves when `outcome` is there. */
  readonly over: Promise<unknown>;
  readonly outcome: StoreOutcome | undefined;
}

/** A session that may be ending for its user. */
export interface PossibleEnd {
  /** Absent when the store does not tell the ids of the sessions it clears. */
  readonly sid: string | undefined;
  readonly uid: string;
  /** The requests that are ending it. */
  readonly actors: ReadonlySet<SessionRequest>;
  /** The requests that have it while somebody ends it at the store: a job, or one of them. */
  readonly holders: ReadonlySet<SessionRequest>;
  readonly calls: readonly EndingCall[];
  /** Whether a request that does not take part has saved the ended session back: the user wanted to leave. */
  readonly savedBack: boolean;
}

export interface VerdictContext extends SettleOptions {
  /** The user of a session, as the store has it now; rejects when it cannot be read. */
  readonly user: (sid: string) => Promise<string | undefined>;
  /** The session that a browser is left with by these requests. */
  readonly leftWith: (requests: readonly SessionRequest[], before: string | undefined) => string | undefined;
}

/** A store that has not called back by then is asked. */
const CALL_TIMEOUT_MS = 25_000;
const ASK_TIMEOUT_MS = 5_000;
/** When a store that has said nothing is asked whether it is done, in milliseconds after the time before. */
const ASK_AGAIN_MS = [0, 50, 250, 1_000];

/**
 * Whether a session has ended for its user (session-endings.md, rules 2 to 4): decided when the store is done and the
 * responses are closed, by asking the store whether the same browser still gets the same user.
 */
export async function hasEnded(end: PossibleEnd, context: VerdictContext): Promise<boolean> {
  const over = orAborted(Promise.all(end.calls.map(({ over }) => over)), context.hurry);
  await withTimeout(over.catch(() => undefined), CALL_TIMEOUT_MS, undefined); // prettier-ignore
  const actors = await actorsOf(end, context);
  return actors.length > 0 ? leftBy(actors, end, context) : verdictOn(end, [...end.holders], context);
}

/**
 * The requests that are ending the session. Where none is known, those that have it get a grace to show that they did:
 * a job that ends a session does not wait for the requests of its user.
 */
async function actorsOf(end: PossibleEnd, context: VerdictContext): Promise<readonly SessionRequest[]> {
  const { actors, holders, sid } = end;
  if (actors.size > 0 || holders.size === 0) return [...actors];
  await withTimeout(Promise.all([...holders].map((holder) => settled(holder, context))), context.graceMs, undefined); // prettier-ignore
  return [...holders].filter((holder) => !holder.isFinished && (holder.hasLetGo || holder.sessionID !== sid));
}

/**
 * Whether the requests leave their browser without the user. One that does while another one is still at it – both were
 * under way, and that one may be renewing the session – is given a grace.
 */
async function leftBy(
  actors: readonly SessionRequest[],
  end: PossibleEnd,
  context: VerdictContext,
): Promise<boolean> {
  const open = new Map<SessionRequest, Promise<unknown>>();
  for (const actor of actors) open.set(actor, settled(actor, context).then(() => open.delete(actor))); // prettier-ignore
  const verdict = (): Promise<boolean> => verdictOn(end, actors.filter((actor) => !open.has(actor)), context); // prettier-ignore
  while (open.size > 0) {
    await Promise.race(open.values());
    if (open.size === 0 || !(await verdict())) continue;
    await withTimeout(Promise.all(open.values()), context.graceMs, undefined);
    if (await verdict()) return true;
  }
  return verdict();
}

/** @param requests those that have had the session, as far as they are settled */
async function verdictOn(
  end: PossibleEnd,
  requests: readonly SessionRequest[],
  context: VerdictContext,
): Promise<boolean> {
  const { sid, uid, calls } = end;
  const heard = calls.map(({ outcome }) => outcome);
  if (heard.every((outcome) => outcome === 'failed')) return !(await mayHave(sid, uid, context));
  // The session that has ended is asked for as well, as long as the store may still be at it.
  const unsure = heard.some((outcome) => outcome === undefined || outcome === 'silent');
  let still: string | undefined;
  for (const ms of unsure ? ASK_AGAIN_MS : [0]) {
    if (ms > 0) await pause(ms);
    still = await stillLoggedIn(end, requests, unsure, context);
    if (still === undefined) return true;
  }
  // Cut off by the shutdown: rather one logout too many.
  return still === sid && context.hurry.aborted && heard.includes(undefined);
}

/** The session by which the browser still gets this user. */
async function stillLoggedIn(
  { sid, uid, savedBack }: PossibleEnd,
  requests: readonly SessionRequest[],
  unsure: boolean,
  context: VerdictContext,
): Promise<string | undefined> {
  const sids = new Set(requests.length > 0 ? [context.leftWith(requests, sid)] : []);
  if (unsure) sids.add(sid);
  if (savedBack) sids.delete(sid);
  for (const left of sids) {
    // A store that cannot be asked leaves what its calls said: the end counts.
    if (left !== undefined && (await asked(left, context).catch(() => undefined)) === uid) return left;
  }
  return undefined;
}

/** A failure may have come after the effect. Only a store that says so has ended the session. */
async function mayHave(sid: string | undefined, uid: string, context: VerdictContext): Promise<boolean> {
  if (sid === undefined) return true;
  return asked(sid, context).then(
    (user) => user === uid,
    () => true,
  );
}

async function asked(sid: string, { user }: VerdictContext): Promise<string | undefined> {
  return timeoutOrThrow(user(sid), ASK_TIMEOUT_MS);
}
