import type { Emit } from '../debate-space-event.js';
import { DebateSpaceRequestError, type DebateSpaceErrorCode } from '../errors.js';
import { answered } from '../in-time.js';
import { orAborted } from '../linked-signal.js';
import { causeOf, decide, type DeliveryAnswer } from '../outbox/delivery-policy.js';
import type { Deliver } from '../outbox/dispatcher.js';
import { fullJitter, MAX_RETRY_AFTER_MS } from '../remote/backoff.js';
import type { ErasureClaim, ErasureEnd, Setback } from './erasure-claim.js';
import type { BeforeErase, ErasureMode } from './erasure.js';

/** What came of an attempt. */
export type AttemptResult = { readonly end: ErasureEnd } | FailedAttempt;

export interface FailedAttempt {
  readonly end?: undefined;
  readonly setback: Setback;
  /** What it says of all the others: the service wants fewer requests, or it is away, or the keys are wrong. */
  readonly others: 'unaffected' | 'slower' | 'held-up';
  /** Nothing went wrong: the app shuts down, or somebody paused or cancelled it. */
  readonly brokenOff: boolean;
  /** Until the next attempt, in milliseconds. */
  readonly delayMs: number;
  /** What is most likely to mend it. */
  readonly hint: string;
}

export interface ErasureAttemptParts {
  readonly beforeErase?: BeforeErase | undefined;
  /** Absent when the identity provider notifies the service. */
  readonly logOut?: Deliver | undefined;
  /**
   * One request. @param mayStillBeSent asked immediately before it
   * @returns the status of the answer, 404 when the service does not know the user
   */
  readonly erase: (uid: string, mode: ErasureMode, mayStillBeSent: () => Promise<boolean>) => Promise<number>;
  /** Whether it is the service that says 404, and not somebody else at a wrong address. */
  readonly isServiceThere: () => Promise<boolean>;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
  readonly emit: Emit;
}

/** How long `erasure.beforeErase` may take, in milliseconds. */
export const HOOK_WITHIN_MS = 30_000;
const LONGEST_REASON = 1_000;
const LEAST_DELAY_MS = 100;
const MINUTE_MS = 60_000;
const NOT_SENT = { unknown: false, sent: false } as const;

/** One attempt at one erasure: the host's word, the logout, the operation. Never rejects. */
export class ErasureAttempt {
  readonly #parts: ErasureAttemptParts;

  constructor(parts: ErasureAttemptParts) {
    this.#parts = parts;
  }

  /** @param mayStillBeSent asked immediately before the operation is sent */
  async make(claimed: ErasureClaim, mayStillBeSent: () => Promise<boolean>): Promise<AttemptResult> {
    const { uid, hint = '' } = claimed;
    if (uid === undefined) return failed(claimed, 'unreadable', hint);
    const forbidden = await this.#veto(claimed, uid);
    if (forbidden) return forbidden;
    const loggedOut = await this.#logOut(claimed, uid);
    if (typeof loggedOut === 'object') return loggedOut;
    const last = { isWanted: true };
    try {
      const status = await this.#parts.erase(uid, claimed.mode, async () => {
        last.isWanted = await mayStillBeSent();
        return last.isWanted;
      });
      if (status === 404 && !(await this.#parts.isServiceThere())) return nobodyThere(claimed);
      // Gone already – unless an earlier attempt, whose answer nobody has heard, was what did it.
      const outcome = status === 404 && !claimed.unknownBefore ? 'not-found' : 'erased';
      return { end: { outcome, status, loggedOut } };
    } catch (error) {
      return last.isWanted ? afterError(claimed, error, this.#parts.closing.aborted) : brokenOff(claimed);
    }
  }

  /** @returns `undefined` when the host agrees */
  async #veto(claimed: ErasureClaim, uid: string): Promise<AttemptResult | undefined> {
    const { beforeErase, closing, emit } = this.#parts;
    if (!beforeErase) return undefined;
    const { mode, references, requestedBy } = claimed;
    const [reference = ''] = references;
    try {
      const asked = { uid, mode, reference, ...(requestedBy === undefined ? {} : { requestedBy }) };
      const word = Promise.resolve(asked).then(beforeErase);
      const answer: unknown = await orAborted(answered(word, HOOK_WITHIN_MS), closing);
      if (answer === undefined) return undefined;
      const { veto } = Object(answer) as { veto?: unknown };
      if (typeof veto !== 'string') throw new TypeError('neither nothing nor a veto');
      return { end: { outcome: 'vetoed', loggedOut: false, reason: veto.slice(0, LONGEST_REASON) } };
    } catch (error) {
      if (closing.aborted) return brokenOff(claimed);
      const name = error instanceof Error ? error.name : typeof error;
      emit({ type: 'fault', where: 'erasure.beforeErase', error: name });
      const hint = 'see why erasure.beforeErase fails; without its word nothing is erased';
      return failed(claimed, 'beforeErase failed', hint);
    }
  }

  /** @returns whether the service took it; a result when it may take it later: the operation waits for that */
  async #logOut(claimed: ErasureClaim, uid: string): Promise<boolean | AttemptResult> {
    const { logOut } = this.#parts;
    if (!logOut) return false;
    const { uidHash: id, attempts, rejections, ageMs } = claimed;
    const entry = { id, uid, reason: 'erasure', endedAt: Date.now() - ageMs } as const;
    const answer = await logOut(entry);
    if (answer.aborted) return brokenOff(claimed);
    const decision = decide(answer, { entry, attempts, rejections }, Infinity);
    // Refused for good: the erasure, which the law asks for, does not wait for it. The receipt tells.
    if (decision.action !== 'retry') return decision.action === 'finish';
    return afterLogout(claimed, answer, decision.rejections);
  }
}

function setbackOf({ rejections }: ErasureClaim, cause: string): Setback {
  return { ...NOT_SENT, cause, rejections };
}

function failed(claimed: ErasureClaim, cause: string, hint: string): FailedAttempt {
  const setback = setbackOf(claimed, cause);
  return { setback, others: 'unaffected', brokenOff: false, delayMs: delay(claimed), hint };
}

function brokenOff(claimed: ErasureClaim): FailedAttempt {
  return { ...failed(claimed, 'broken off', ''), brokenOff: true, delayMs: 0 };
}

function nobodyThere(claimed: ErasureClaim): FailedAttempt {
  const hint = 'the address says 404 to everything, and is not the service; check baseUrl';
  const setback = { ...setbackOf(claimed, '404'), sent: true };
  return { setback, others: 'held-up', brokenOff: false, delayMs: delay(claimed), hint };
}

function afterLogout(claimed: ErasureClaim, answer: DeliveryAnswer, rejections: number): FailedAttempt {
  const { local = false, status, retryAfterMs = 0 } = answer;
  return {
    setback: { ...setbackOf(claimed, `logout: ${causeOf(answer)}`), rejections },
    others: local || status === 400 ? 'unaffected' : status === 429 ? 'slower' : 'held-up',
    brokenOff: false,
    delayMs: Math.max(delay(claimed), Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)),
    hint: 'see that the service is up, and run `npx debate-space doctor`',
  };
}

function afterError(claimed: ErasureClaim, error: unknown, isClosing: boolean): FailedAttempt {
  if (!(error instanceof DebateSpaceRequestError)) {
    const cause = error instanceof Error ? error.name : typeof error;
    const setback = { ...setbackOf(claimed, cause), unknown: true, sent: true };
    return { setback, others: 'unaffected', brokenOff: false, delayMs: delay(claimed), hint: 'an error of this plugin' }; // prettier-ignore
  }
  const { outcome, status, code, retryAfterMs = 0 } = error;
  const setback = {
    ...setbackOf(claimed, String(status ?? code)),
    unknown: outcome === 'unknown',
    sent: outcome !== 'not-sent',
  };
  const isBrokenOff = isClosing && code === 'ERR_DEBATE_SPACE_ABORTED';
  if (isBrokenOff) return { setback, others: 'unaffected', brokenOff: true, delayMs: 0, hint: '' };
  const refusedAlone = code === 'ERR_DEBATE_SPACE_REFUSED';
  return {
    setback,
    others: refusedAlone ? 'unaffected' : (OTHERS[code] ?? 'held-up'),
    brokenOff: false,
    delayMs: Math.max(
      refusedAlone ? delayOfRefused(claimed) : delay(claimed),
      Math.min(retryAfterMs, MAX_RETRY_AFTER_MS),
    ),
    hint: refusedAlone
      ? 'the service refuses to erase this user; ask its operator'
      : error.message.replace(/^\w+: /, ''),
  };
}

/** A place in the rate limit that did not come in time, or a uid of an older version, says nothing of the service. */
const OTHERS: Partial<Record<DebateSpaceErrorCode, 'unaffected' | 'slower'>> = {
  ERR_DEBATE_SPACE_RATE_LIMITED: 'slower',
  ERR_DEBATE_SPACE_ABORTED: 'unaffected',
  ERR_DEBATE_SPACE_INVALID_UID: 'unaffected',
};

/** Never so short that a failure on this side becomes a loop. */
function delay({ failures }: ErasureClaim): number {
  return Math.max(LEAST_DELAY_MS, fullJitter(failures + 1, 1_000, 5 * MINUTE_MS));
}

/** Repeating alone hardly helps: somebody has to look at it. */
function delayOfRefused({ failures }: ErasureClaim): number {
  return fullJitter(failures + 1, MINUTE_MS, 6 * 60 * MINUTE_MS);
}
