import { setTimeout as pause } from 'node:timers/promises';
import { answered, inTime } from '../in-time.js';
import { orAborted } from '../linked-signal.js';
import type { SessionRequest } from './session-request.js';
import { settled } from './settled.js';
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
  /** The requests that are ending it, as far as they are known. */
  readonly actors: ReadonlySet<SessionRequest>;
  readonly calls: readonly EndingCall[];
  /** Whether a request that does not take part has saved the ended session back: the user wanted to leave. */
  readonly savedBack: boolean;
}

export interface VerdictContext {
  /** The user of a session, as the store has it now; rejects when it cannot be read. */
  readonly user: (sid: string) => Promise<string | undefined>;
  /** The session that a request leaves its browser with. */
  readonly leftWith: (request: SessionRequest, before: string | undefined) => string | undefined;
  readonly graceMs: number;
  /** Aborted when the app shuts down: nothing is waited for any more but the store. */
  readonly hurry: AbortSignal;
}

/** A store that has not called back by then is asked. Shorter than the lease of what is held meanwhile. */
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
  await inTime(over.catch(() => undefined), CALL_TIMEOUT_MS, undefined); // prettier-ignore
  await actorsSettled(end, context);
  return verdictOn(end, context);
}

/** With several actors it is not known which one did it: when the first is done, the others get a grace. */
async function actorsSettled({ actors }: PossibleEnd, { graceMs, hurry }: VerdictContext): Promise<void> {
  if (actors.size === 0) return;
  const each = [...actors].map((actor) => settled(actor.res, graceMs, hurry));
  await Promise.race(each);
  await inTime(Promise.all(each), graceMs, undefined);
}

async function verdictOn(end: PossibleEnd, context: VerdictContext): Promise<boolean> {
  const { sid, uid, calls } = end;
  const heard = calls.map(({ outcome }) => outcome);
  if (heard.every((outcome) => outcome === 'failed')) return !(await mayHave(sid, uid, context));
  // The session that has ended is asked for as well, as long as the store may still be at it.
  const unsure = heard.some((outcome) => outcome === undefined || outcome === 'silent');
  let still: string | undefined;
  for (const ms of unsure ? ASK_AGAIN_MS : [0]) {
    if (ms > 0) await pause(ms);
    still = await stillLoggedIn(end, unsure, context);
    if (still === undefined) return true;
  }
  // Cut off by the shutdown: rather one logout too many.
  return still === sid && context.hurry.aborted && heard.includes(undefined);
}

/** The session by which a browser that took part still gets this user. */
async function stillLoggedIn(
  { sid, uid, actors, savedBack }: PossibleEnd,
  unsure: boolean,
  context: VerdictContext,
): Promise<string | undefined> {
  const sids = new Set([...actors].map((actor) => context.leftWith(actor, sid)));
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
  return answered(user(sid), ASK_TIMEOUT_MS);
}
