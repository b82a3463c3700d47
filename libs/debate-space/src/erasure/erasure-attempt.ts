import { randomUUID } from 'node:crypto';
import type { Emit } from '../events.js';
import { DebateSpaceRequestError, type DebateSpaceErrorCode } from '../errors.js';
import { raceAbort } from '../async/combined-signal.js';
import { timeoutOrThrow } from '../async/with-timeout.js';
import { fullJitter } from '../jobs/circuit-breaker.js';
import { causeOf, decide, isUnexpected } from '../logout/delivery-policy.js';
import type { LogoutSender } from '../logout/logout-sender.js';
import { MAX_RETRY_AFTER_MS } from '../service/http/service-pause.js';
import { NOT_FOUND } from '../service/http/status-table.js';
import type { NoSlot } from '../service/rate-limiter.js';
import type { Claim } from '../storage/storage.js';
import type { BeforeErase, ErasureEnd, PendingErasure } from './erasure.js';
import type { ErasureCalls } from './erasure-calls.js';

/** Called immediately before the request is sent; `false` breaks the attempt off. */
export type MarkSending = () => Promise<boolean>;

/** An attempt that did not end the erasure. */
export interface FailedAttempt extends Pick<Claim, 'rejections'> {
  readonly cause: string;
  readonly hint: string;
  /** Whether the request for the erasure was sent. */
  readonly sent: boolean;
  /** Whether this attempt may have erased the user. */
  readonly uncertain: boolean;
  /** What it says of all the others: the service wants fewer requests, or it is away, or the keys are wrong. */
  readonly others: 'unaffected' | 'slower' | 'held-up';
  /** Nothing failed: the app shuts down, or somebody paused or canceled the erasure, or requested a deletion instead. */
  readonly brokenOff: boolean;
  /** Until the next attempt, in milliseconds. */
  readonly delayMs: number;
}

/** Where it says no more, nothing was sent, and the failure concerns this erasure only. */
type Failure = Pick<FailedAttempt, 'cause' | 'hint'> & Partial<FailedAttempt>;
const NOTHING_SENT = { sent: false, uncertain: false, others: 'unaffected', brokenOff: false } as const;
const BROKEN_OFF = { cause: 'broken off', hint: '', brokenOff: true, delayMs: 0 } as const;

const HINTS = {
  noSlot: 'raise http.rateLimit if the service permits more requests',
  beforeErase: 'see why erasure.beforeErase fails; without its answer nothing is erased',
  noService: 'the address finds nothing and nobody, and is not the service; check baseUrl',
  noLogout: 'see that the service is up, and run `npx debate-space doctor`',
  refused: 'the service refuses to erase this user; ask its operator',
};

/** What errors say of all the other erasures, if not that they are held up. */
const OTHERS: Partial<Record<DebateSpaceErrorCode, FailedAttempt['others']>> = {
  ERR_DEBATE_SPACE_RATE_LIMITED: 'slower',
  ERR_DEBATE_SPACE_ABORTED: 'unaffected', // a slot of the rate limit did not come in time
  ERR_DEBATE_SPACE_INVALID_UID: 'unaffected', // an older version took it
  ERR_DEBATE_SPACE_REFUSED: 'unaffected',
};

const PAGE = 'with a web page';
const BEFORE_ERASE_TIMEOUT_MS = 30_000;
const MAX_REASON_LENGTH = 1_000;
const MIN_DELAY_MS = 100;
const MINUTE_MS = 60_000;

/**
 * One attempt at one erasure. Takes its rate-limit slot before it calls `beforeErase`, so that only the logout happens
 * between the host's answer and the erasure request. Rejects only when `markSending` does.
 */
export class ErasureAttempt {
  /**
   * @param logouts absent when the identity provider notifies the service
   * @param shutdownSignal aborted when the app shuts down
   */
  constructor(
    private readonly calls: Pick<ErasureCalls, 'prepare' | 'erase' | 'isServiceThere'>,
    private readonly logouts: Pick<LogoutSender, 'send'> | undefined,
    private readonly beforeErase: BeforeErase | undefined,
    private readonly shutdownSignal: AbortSignal,
    private readonly emit: Emit,
  ) {}

  async make(
    erasure: PendingErasure,
    claim: Claim,
    markSending: MarkSending,
  ): Promise<ErasureEnd | FailedAttempt> {
    const result = await this.#make(erasure, claim, markSending);
    if ('outcome' in result) return result;
    return { ...NOTHING_SENT, rejections: claim.rejections, delayMs: delayOf(claim), ...result };
  }

  async #make(
    erasure: PendingErasure,
    claim: Claim,
    markSending: MarkSending,
  ): Promise<ErasureEnd | Failure> {
    let refusal: NoSlot | undefined;
    try {
      refusal = await this.calls.prepare(erasure.mode);
    } catch (error) {
      return this.shutdownSignal.aborted ? BROKEN_OFF : failureOf(claim, error);
    }
    if (refusal)
      return {
        cause: 'no slot of the rate limit',
        hint: HINTS.noSlot,
        others: 'slower',
        delayMs: refusal.retryAfterMs,
      };
    return (await this.#veto(erasure)) ?? (await this.#erase(erasure, claim, markSending));
  }

  /** @returns `undefined` when the host agrees */
  async #veto(erasure: PendingErasure): Promise<ErasureEnd | Failure | undefined> {
    if (!this.beforeErase) return undefined;
    try {
      const answering = Promise.resolve({ ...erasure }).then(this.beforeErase);
      const answered = timeoutOrThrow(answering, BEFORE_ERASE_TIMEOUT_MS);
      const answer: unknown = await raceAbort(answered, this.shutdownSignal);
      if (answer === undefined) return undefined;
      const { veto } = Object(answer) as { veto?: unknown };
      if (typeof veto !== 'string') throw new TypeError('neither nothing nor a veto');
      return { outcome: 'vetoed', loggedOut: false, reason: veto.slice(0, MAX_REASON_LENGTH) };
    } catch (error) {
      if (this.shutdownSignal.aborted) return BROKEN_OFF;
      const name = error instanceof Error ? error.name : typeof error;
      this.emit({ type: 'fault', where: 'erasure.beforeErase', error: name });
      return { cause: 'beforeErase failed', hint: HINTS.beforeErase };
    }
  }

  async #erase(
    { uid, mode }: PendingErasure,
    claim: Claim,
    markSending: MarkSending,
  ): Promise<ErasureEnd | Failure> {
    const loggedOut = await this.#logOut(claim, uid);
    if (typeof loggedOut === 'object') return loggedOut;
    if (!(await markSending())) return BROKEN_OFF;
    try {
      const status = await this.calls.erase(uid, mode);
      const isNotFound = NOT_FOUND.has(status);
      if (isNotFound && !(await this.calls.isServiceThere()))
        return { cause: String(status), hint: HINTS.noService, others: 'held-up', sent: true };
      // Not found – unless an earlier attempt erased the user, and its answer was lost.
      const outcome = isNotFound && claim.uncertain === undefined ? 'not-found' : 'erased';
      return { outcome, status, loggedOut };
    } catch (error) {
      return failureOf(claim, error, this.shutdownSignal.aborted);
    }
  }

  /** @returns whether the service took it; a failure when it may take it later: the erasure waits for that */
  async #logOut(claim: Claim, uid: string): Promise<boolean | Failure> {
    if (!this.logouts) return false;
    const { attempts, rejections } = claim;
    // The service must not be able to tell which receipt belongs to the user: the id says nothing.
    const entry = { id: randomUUID(), uid, reason: 'erasure', endedAt: Date.now() } as const;
    const answer = await this.logouts.send(entry);
    if (answer.aborted) return BROKEN_OFF;
    const decision = decide(answer, { attempts, rejections, ageMs: 0 }, Infinity);
    // The erasure, which the law demands, does not wait for a logout that is refused, nor for a logout route that is not
    // there. The receipt says so.
    if (decision.action !== 'retry' || isUnexpected(answer)) return decision.action === 'finish';
    const { local = false, status, retryAfterMs } = answer;
    return {
      cause: `logout: ${causeOf(answer)}`,
      hint: HINTS.noLogout,
      rejections: decision.rejections,
      others: local || status === 400 ? 'unaffected' : status === 429 ? 'slower' : 'held-up',
      delayMs: delayOf(claim, retryAfterMs),
    };
  }
}

/** The request for the erasure failed, or the one for its access token. */
function failureOf(claim: Claim, error: unknown, isClosing = false): Failure {
  if (!(error instanceof DebateSpaceRequestError)) {
    const cause = error instanceof Error ? error.name : typeof error;
    return { cause, hint: 'an error of this plugin', uncertain: true, sent: true };
  }
  const { outcome, status, code, message, retryAfterMs } = error;
  // A page with 403 says nothing of the API key.
  const cause = status === undefined ? code : message.includes(PAGE) ? `${status} ${PAGE}` : String(status);
  const known = { cause, uncertain: outcome === 'unknown', sent: outcome !== 'not-sent' };
  if (isClosing && code === 'ERR_DEBATE_SPACE_ABORTED') return { ...BROKEN_OFF, ...known };
  const isRefused = code === 'ERR_DEBATE_SPACE_REFUSED';
  return {
    ...known,
    hint: isRefused ? HINTS.refused : message.replace(/^\w+: /, ''),
    // 202: the service does it later.
    others: status === 202 ? 'unaffected' : (OTHERS[code] ?? 'held-up'),
    delayMs: delayOf(claim, retryAfterMs, isRefused),
  };
}

/** @param isRefused then repeating alone hardly helps: somebody has to look at it */
function delayOf({ failures }: Claim, retryAfterMs = 0, isRefused = false): number {
  const jitter = isRefused
    ? fullJitter(failures + 1, MINUTE_MS, 6 * 60 * MINUTE_MS)
    : fullJitter(failures + 1, 1_000, 5 * MINUTE_MS);
  // Never so short that a failure on this side becomes a loop.
  return Math.max(MIN_DELAY_MS, jitter, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}
