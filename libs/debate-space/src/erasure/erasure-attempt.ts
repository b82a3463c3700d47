import type { Emit } from '../debate-space-event.js';
import { DebateSpaceRequestError } from '../errors.js';
import { answered } from '../in-time.js';
import type { DeliveryAnswer } from '../outbox/delivery-policy.js';
import { causeOf, decide } from '../outbox/delivery-policy.js';
import type { Deliver } from '../outbox/dispatcher.js';
import { fullJitter } from '../remote/backoff.js';
import type { BeforeErase, ErasureMode } from './erasure.js';
import type { ClaimedErasure, ErasureEnd, Setback } from './erasure-queue.js';

/** What came of an attempt. */
export type AttemptResult =
  | { readonly end: ErasureEnd; readonly setback?: undefined }
  | {
      readonly end?: undefined;
      readonly setback: Setback;
      /** What it says of all the others: the service wants fewer requests, or it is away, or the keys are wrong. */
      readonly others: 'unaffected' | 'slower' | 'held-up';
      /** Broken off because the app shuts down. */
      readonly aborted: boolean;
      /** Until the next attempt. */
      readonly delayMs: number;
      /** What is most likely to mend it. */
      readonly cure: string;
    };

export interface ErasureAttemptParts {
  readonly beforeErase?: BeforeErase | undefined;
  /** Absent when the identity provider notifies the service. */
  readonly logOut?: Deliver | undefined;
  /** One request. @returns the status of the answer, 404 when the service does not know the user */
  readonly erase: (uid: string, mode: ErasureMode) => Promise<number>;
  readonly emit: Emit;
}

/** How long `erasure.beforeErase` may take, in milliseconds. */
export const HOOK_WITHIN_MS = 30_000;
const MINUTE_MS = 60_000;
const NOT_SENT = { unknown: false, sent: false } as const;

/** One attempt at one erasure: the host's word, the logout, the operation. Never rejects. */
export class ErasureAttempt {
  readonly #parts: ErasureAttemptParts;

  constructor(parts: ErasureAttemptParts) {
    this.#parts = parts;
  }

  async make(claimed: ClaimedErasure): Promise<AttemptResult> {
    const { uid } = claimed;
    if (uid === undefined) {
      return failed(claimed, {
        cause: 'unreadable',
        cure: 'the entry is damaged; cancel it, and ask again for this user',
      });
    }
    const refused = await this.#veto(claimed, uid);
    if (refused) return refused;
    const loggedOut = await this.#logOut(claimed, uid);
    if (typeof loggedOut === 'object') return loggedOut;
    try {
      const answer = await this.#parts.erase(uid, claimed.mode);
      // Gone already – unless an earlier attempt, whose answer nobody has heard, was what did it.
      const outcome = answer === 404 && !claimed.unknownBefore ? 'already-gone' : 'erased';
      return { end: { outcome, answer, loggedOut } };
    } catch (error) {
      return afterError(claimed, error);
    }
  }

  /** @returns `undefined` when the host agrees */
  async #veto(claimed: ClaimedErasure, uid: string): Promise<AttemptResult | undefined> {
    const { beforeErase, emit } = this.#parts;
    if (!beforeErase) return undefined;
    const { mode, references, requestedBy } = claimed;
    const [reference = ''] = references;
    try {
      const asked = { uid, mode, reference, ...(requestedBy === undefined ? {} : { requestedBy }) };
      const answer: unknown = await answered(Promise.resolve(asked).then(beforeErase), HOOK_WITHIN_MS);
      if (answer === undefined) return undefined;
      const { veto } = Object(answer) as { veto?: unknown };
      if (typeof veto !== 'string') throw new TypeError('neither nothing nor a veto');
      return { end: { outcome: 'vetoed', loggedOut: false, reason: veto } };
    } catch (error) {
      const name = error instanceof Error ? error.name : typeof error;
      emit({ type: 'fault', where: 'erasure.beforeErase', error: name });
      return failed(claimed, {
        cause: 'beforeErase failed',
        cure: 'see why erasure.beforeErase fails; without its word nothing is erased',
      });
    }
  }

  /** @returns whether the service took it; a result when it may take it later: the operation waits for that */
  async #logOut(claimed: ClaimedErasure, uid: string): Promise<boolean | AttemptResult> {
    const { logOut } = this.#parts;
    if (!logOut) return false;
    const { attempts, rejections, since } = claimed;
    const entry = { id: claimed.uidHash, uid, reason: 'erasure', endedAt: since } as const;
    const answer = await logOut(entry);
    const decision = decide(answer, { entry, attempts: attempts - 1, rejections }, Infinity);
    // Refused for good: the erasure, which the law asks for, does not wait for it. The receipt tells.
    if (decision.action !== 'retry') return decision.action === 'finish';
    return afterLogout(claimed, answer, decision.rejections, decision.delayMs);
  }
}

function failed(
  { rejections, failures }: ClaimedErasure,
  { cause, cure }: { readonly cause: string; readonly cure: string },
): AttemptResult {
  const setback = { ...NOT_SENT, cause, rejections };
  return { setback, others: 'unaffected', aborted: false, delayMs: delay(failures), cure };
}

function afterLogout(
  { failures }: ClaimedErasure,
  answer: DeliveryAnswer,
  rejections: number,
  retryAfterMs: number,
): AttemptResult {
  const { aborted = false, local = false, status } = answer;
  return {
    setback: { ...NOT_SENT, cause: `logout: ${causeOf(answer)}`, rejections },
    others: local || status === 400 ? 'unaffected' : othersAfter(status),
    aborted,
    delayMs: Math.max(delay(failures), retryAfterMs),
    cure: 'see that the service is up, and run `npx debate-space doctor`',
  };
}

function afterError({ rejections, failures }: ClaimedErasure, error: unknown): AttemptResult {
  if (!(error instanceof DebateSpaceRequestError)) {
    const cause = error instanceof Error ? error.name : typeof error;
    const setback = { unknown: true, sent: true, cause, rejections };
    return { setback, others: 'unaffected', aborted: false, delayMs: delay(failures), cure: 'an error of this plugin' }; // prettier-ignore
  }
  const { outcome, status, code, retryAfterMs = 0 } = error;
  const refusedAlone = code === 'ERR_DEBATE_SPACE_REFUSED';
  return {
    setback: {
      cause: String(status ?? code),
      unknown: outcome === 'unknown',
      sent: outcome !== 'not-sent',
      rejections,
    },
    others: refusedAlone ? 'unaffected' : othersAfter(status),
    aborted: error.name === 'AbortError',
    delayMs: Math.max(refusedAlone ? delayOfRefused(failures) : delay(failures), retryAfterMs),
    cure: refusedAlone
      ? 'the service refuses to erase this user; ask its operator'
      : error.message.replace(/^\w+: /, ''),
  };
}

function othersAfter(status: number | undefined): 'slower' | 'held-up' {
  return status === 429 ? 'slower' : 'held-up';
}

function delay(failures: number): number {
  return fullJitter(failures + 1, 1_000, 5 * MINUTE_MS);
}

/** Repeating alone hardly helps: somebody has to look at it. */
function delayOfRefused(failures: number): number {
  return fullJitter(failures + 1, MINUTE_MS, 6 * 60 * MINUTE_MS);
}
