import { randomUUID } from 'node:crypto';
import type { Emit } from '../events.js';
import { DebateSpaceError, DebateSpaceRequestError, type DebateSpaceErrorCode } from '../errors.js';
import { raceAbort } from '../async/combined-signal.js';
import { timeoutOrThrow } from '../async/with-timeout.js';
import { fullJitter } from '../jobs/circuit-breaker.js';
import { causeOf, decide, isUnexpected } from '../logout/delivery-policy.js';
import type { LogoutSender } from '../logout/logout-sender.js';
import type { UsersApi } from '../service/calls/users-api.js';
import { MAX_RETRY_AFTER_MS } from '../service/http/service-pause.js';
import { NOT_FOUND } from '../service/http/status-table.js';
import type { Claim } from '../storage/storage.js';
import type { BeforeErase, ErasureEnd, PendingErasure } from './erasure.js';
import type { ErasureRepository } from './erasure-repository.js';

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

const NOTHING_SENT = { sent: false, uncertain: false, others: 'unaffected', brokenOff: false } as const;
const BROKEN_OFF = { cause: 'broken off', hint: '', brokenOff: true, delayMs: 0 } as const;

const HINTS = {
  noSlot: 'raise http.rateLimit if the service permits more requests',
  beforeErase: 'see why erasure.beforeErase fails; without its answer nothing is erased',
  noService: 'the service does not answer at this address; check baseUrl',
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
/** Only the service itself answers with these errors. */
const FROM_THE_SERVICE: ReadonlySet<DebateSpaceErrorCode> = new Set([
  'ERR_DEBATE_SPACE_AUTHENTICATION',
  'ERR_DEBATE_SPACE_PERMISSION',
  'ERR_DEBATE_SPACE_REFUSED',
]);

const PAGE = 'with a web page';
const BEFORE_ERASE_TIMEOUT_MS = 30_000;
const BELIEVED_FOR_MS = 10 * 60_000;
const MAX_REASON_LENGTH = 1_000;
const MIN_DELAY_MS = 100;
const MINUTE_MS = 60_000;

/**
 * One attempt at one erasure. Takes its rate-limit slot before it calls `beforeErase`, so that only the logout happens
 * between the host's answer and the erasure request. Rejects only when the repository does.
 */
export class ErasureAttempt {
  #serviceSeenUntil = 0;

  /**
   * @param logouts absent when the identity provider notifies the service
   * @param shutdownSignal aborted when the app shuts down
   */
  constructor(
    private readonly repository: Pick<ErasureRepository, 'waitsForDeletion' | 'markSending'>,
    private readonly users: Pick<UsersApi, 'prepareErasure' | 'erase' | 'list'>,
    private readonly logouts: Pick<LogoutSender, 'send'> | undefined,
    private readonly beforeErase: BeforeErase | undefined,
    private readonly shutdownSignal: AbortSignal,
    private readonly emit: Emit,
  ) {}

  async make(erasure: PendingErasure, claim: Claim): Promise<ErasureEnd | FailedAttempt> {
    const early = (await this.#takeSlot(erasure, claim)) ?? (await this.#veto(erasure, claim));
    if (early) return early;
    const loggedOut = await this.#logOut(erasure, claim);
    if (typeof loggedOut === 'object') return loggedOut;
    const { repository } = this;
    if ((await repository.waitsForDeletion(erasure)) || !(await repository.markSending(claim)))
      return failed(claim, BROKEN_OFF);
    return this.#erase(erasure, claim, loggedOut);
  }

  /** @returns `undefined` when the request may be sent: there is an access token, and a slot of the rate limit */
  async #takeSlot({ mode }: PendingErasure, claim: Claim): Promise<FailedAttempt | undefined> {
    try {
      const refusal = await this.users.prepareErasure(mode, this.shutdownSignal);
      if (!refusal) return undefined;
      const cause = 'no slot of the rate limit';
      return failed(claim, { cause, hint: HINTS.noSlot, others: 'slower', delayMs: refusal.retryAfterMs });
    } catch (error) {
      return this.shutdownSignal.aborted ? failed(claim, BROKEN_OFF) : failedBy(error, claim);
    }
  }

  /** @returns `undefined` when the host agrees */
  async #veto(erasure: PendingErasure, claim: Claim): Promise<ErasureEnd | FailedAttempt | undefined> {
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
      if (this.shutdownSignal.aborted) return failed(claim, BROKEN_OFF);
      const name = error instanceof Error ? error.name : typeof error;
      this.emit({ type: 'fault', where: 'erasure.beforeErase', error: name });
      return failed(claim, { cause: 'beforeErase failed', hint: HINTS.beforeErase });
    }
  }

  /** @returns whether the service took it; a failure when it may take it later: the erasure waits for that */
  async #logOut({ uid }: PendingErasure, claim: Claim): Promise<boolean | FailedAttempt> {
    if (!this.logouts) return false;
    const { attempts, rejections } = claim;
    // The service must not be able to tell which receipt belongs to the user: the id says nothing.
    const entry = { id: randomUUID(), uid, reason: 'erasure', endedAt: Date.now() } as const;
    const answer = await this.logouts.send(entry);
    if (answer.aborted) return failed(claim, BROKEN_OFF);
    const decision = decide(answer, { attempts, rejections, ageMs: 0 }, Infinity);
    // The erasure, which the law demands, does not wait for a logout that is refused, nor for a logout route that is not
    // there. The receipt says so.
    if (decision.action !== 'retry' || isUnexpected(answer)) return decision.action === 'finish';
    const { local = false, status, retryAfterMs } = answer;
    return failed(claim, {
      cause: `logout: ${causeOf(answer)}`,
      hint: HINTS.noLogout,
      rejections: decision.rejections,
      others: local || status === 400 ? 'unaffected' : status === 429 ? 'slower' : 'held-up',
      delayMs: delayOf(claim, retryAfterMs),
    });
  }

  async #erase(
    { uid, mode }: PendingErasure,
    claim: Claim,
    loggedOut: boolean,
  ): Promise<ErasureEnd | FailedAttempt> {
    try {
      const status = await this.users.erase(uid, mode, this.shutdownSignal, true);
      const isNotFound = NOT_FOUND.has(status);
      if (isNotFound && !(await this.#isServiceThere())) {
        const cause = String(status);
        return failed(claim, { cause, hint: HINTS.noService, others: 'held-up', sent: true });
      }
      // Not found – unless an earlier attempt erased the user, and its answer was lost.
      const outcome = isNotFound && claim.uncertain === undefined ? 'not-found' : 'erased';
      return { outcome, status, loggedOut };
    } catch (error) {
      return failedBy(error, claim, this.shutdownSignal.aborted);
    }
  }

  /**
   * Whether the service answers at {base_url}: a gateway that says 404 to everything would pass for a service that does not
   * find the user. Requests its user list (service-interface.md, section 4.4), at most every ten minutes. A list that is
   * refused to this API key is an answer. Never rejects.
   */
  async #isServiceThere(): Promise<boolean> {
    if (performance.now() < this.#serviceSeenUntil) return true;
    try {
      await this.users.list({ perPage: 1 }, this.shutdownSignal, { priority: 'job' });
    } catch (error) {
      if (!(error instanceof DebateSpaceError && FROM_THE_SERVICE.has(error.code))) return false;
    }
    this.#serviceSeenUntil = performance.now() + BELIEVED_FOR_MS;
    return true;
  }
}

/** @param known where it says no more, nothing was sent, and the failure concerns this erasure only */
function failed(
  claim: Claim,
  known: Pick<FailedAttempt, 'cause' | 'hint'> & Partial<FailedAttempt>,
): FailedAttempt {
  return { ...NOTHING_SENT, rejections: claim.rejections, delayMs: delayOf(claim), ...known };
}

/** The request for the erasure failed, or the one for its access token. */
function failedBy(error: unknown, claim: Claim, isClosing = false): FailedAttempt {
  if (!(error instanceof DebateSpaceRequestError)) {
    const cause = error instanceof Error ? error.name : typeof error;
    return failed(claim, { cause, hint: 'an error of this plugin', uncertain: true, sent: true });
  }
  const { outcome, status, code, message, retryAfterMs } = error;
  // A page with 403 says nothing of the API key.
  const cause = status === undefined ? code : message.includes(PAGE) ? `${status} ${PAGE}` : String(status);
  const known = { cause, uncertain: outcome === 'unknown', sent: outcome !== 'not-sent' };
  if (isClosing && code === 'ERR_DEBATE_SPACE_ABORTED') return failed(claim, { ...BROKEN_OFF, ...known });
  const isRefused = code === 'ERR_DEBATE_SPACE_REFUSED';
  return failed(claim, {
    ...known,
    hint: isRefused ? HINTS.refused : message.replace(/^\w+: /, ''),
    // 202: the service does it later.
    others: status === 202 ? 'unaffected' : (OTHERS[code] ?? 'held-up'),
    delayMs: delayOf(claim, retryAfterMs, isRefused),
  });
}

/** @param isRefused then repeating alone hardly helps: somebody has to look at it */
function delayOf({ failures }: Claim, retryAfterMs = 0, isRefused = false): number {
  const jitter = isRefused
    ? fullJitter(failures + 1, MINUTE_MS, 6 * 60 * MINUTE_MS)
    : fullJitter(failures + 1, 1_000, 5 * MINUTE_MS);
  // Never so short that a failure on this side becomes a loop.
  return Math.max(MIN_DELAY_MS, jitter, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
}
