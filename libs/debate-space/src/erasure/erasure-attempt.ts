import type { Emit } from '../debate-space-event.js';
import { orAborted } from '../linked-signal.js';
import { decide } from '../logout/delivery-policy.js';
import type { LogoutSender } from '../logout/logout-sender.js';
import type { NoSlot, Slot } from '../remote/rate-limiter.js';
import { timeoutOrThrow } from '../with-timeout.js';
import type { ErasureClaim, ErasureEnd } from './erasure-claim.js';
import type { BeforeErase, ErasureMode } from './erasure.js';
import { afterError, afterLogout, brokenOff, failed, noSlot, serviceMissing, type FailedAttempt } from './failed-attempt.js'; // prettier-ignore

/** What came of an attempt. */
export type AttemptResult = { readonly end: ErasureEnd } | FailedAttempt;

export interface ErasureAttemptParts {
  readonly beforeErase?: BeforeErase | undefined;
  /** Absent when the identity provider notifies the service. */
  readonly logouts?: Pick<LogoutSender, 'send'> | undefined;
  /** Waits for a slot of the rate limit and for an access token. */
  readonly prepare: (mode: ErasureMode) => Promise<Slot | NoSlot>;
  /** One request. @returns the status of the answer, 404 when the service does not know the user */
  readonly erase: (uid: string, mode: ErasureMode, slot: Slot) => Promise<number>;
  /** Whether it is the service that says 404, and not somebody else at a wrong address. */
  readonly isServiceThere: () => Promise<boolean>;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
  readonly emit: Emit;
}

/** How long `erasure.beforeErase` may take, in milliseconds. */
const HOOK_TIMEOUT_MS = 30_000;
const MAX_REASON_LENGTH = 1_000;
const UNREADABLE = 'the record of this erasure cannot be read; cancel it, and request the erasure again';

/**
 * One attempt at one erasure. It waits for the rate limit first: between the word of the host and the request stands the
 * logout only. Rejects only when `markSending` does.
 */
export class ErasureAttempt {
  readonly #parts: ErasureAttemptParts;

  constructor(parts: ErasureAttemptParts) {
    this.#parts = parts;
  }

  /** @param markSending called immediately before the request; `false` breaks the attempt off */
  async make(claim: ErasureClaim, markSending: () => Promise<boolean>): Promise<AttemptResult> {
    const { uid } = claim;
    if (uid === undefined) return failed(claim, 'unreadable', claim.hint ?? UNREADABLE);
    let slot: Slot | NoSlot;
    try {
      slot = await this.#parts.prepare(claim.mode);
    } catch (error) {
      return this.#parts.closing.aborted ? brokenOff(claim) : afterError(claim, error, false);
    }
    if ('retryAfterMs' in slot) return noSlot(claim, slot.retryAfterMs);
    try {
      return await this.#inSlot(claim, uid, slot, markSending);
    } finally {
      slot.release(false); // unless the request has taken it
    }
  }

  async #inSlot(
    claim: ErasureClaim,
    uid: string,
    slot: Slot,
    markSending: () => Promise<boolean>,
  ): Promise<AttemptResult> {
    const { erase, isServiceThere, closing } = this.#parts;
    const vetoed = await this.#veto(claim, uid);
    if (vetoed) return vetoed;
    const loggedOut = await this.#logOut(claim, uid);
    if (typeof loggedOut === 'object') return loggedOut;
    if (!(await markSending())) return brokenOff(claim);
    try {
      const status = await erase(uid, claim.mode, slot);
      if (status === 404 && !(await isServiceThere())) return serviceMissing(claim);
      // Gone already – unless an earlier attempt, whose answer nobody has heard, was what did it.
      const outcome = status === 404 && !claim.unknownBefore ? 'not-found' : 'erased';
      return { end: { outcome, status, loggedOut } };
    } catch (error) {
      return afterError(claim, error, closing.aborted);
    }
  }

  /** @returns `undefined` when the host agrees */
  async #veto(claim: ErasureClaim, uid: string): Promise<AttemptResult | undefined> {
    const { beforeErase, closing, emit } = this.#parts;
    if (!beforeErase) return undefined;
    const { mode, references, requestedBy } = claim;
    const [reference = ''] = references;
    try {
      const asked = { uid, mode, reference, ...(requestedBy === undefined ? {} : { requestedBy }) };
      const word = Promise.resolve(asked).then(beforeErase);
      const answer: unknown = await orAborted(timeoutOrThrow(word, HOOK_TIMEOUT_MS), closing);
      if (answer === undefined) return undefined;
      const { veto } = Object(answer) as { veto?: unknown };
      if (typeof veto !== 'string') throw new TypeError('neither nothing nor a veto');
      return { end: { outcome: 'vetoed', loggedOut: false, reason: veto.slice(0, MAX_REASON_LENGTH) } };
    } catch (error) {
      if (closing.aborted) return brokenOff(claim);
      const name = error instanceof Error ? error.name : typeof error;
      emit({ type: 'fault', where: 'erasure.beforeErase', error: name });
      return failed(claim, 'beforeErase failed', 'see why erasure.beforeErase fails; without its answer nothing is erased'); // prettier-ignore
    }
  }

  /** @returns whether the service took it; a result when it may take it later: the operation waits for that */
  async #logOut(claim: ErasureClaim, uid: string): Promise<boolean | AttemptResult> {
    const { logouts } = this.#parts;
    if (!logouts) return false;
    const { uidHash: id, attempts, rejections } = claim;
    const entry = { id, uid, reason: 'erasure', endedAt: Date.now() } as const;
    const answer = await logouts.send(entry);
    if (answer.aborted) return brokenOff(claim);
    const decision = decide(answer, { entry, attempts, rejections }, Infinity);
    // Refused for good: the erasure, which the law asks for, does not wait for it. The receipt tells.
    if (decision.action !== 'retry') return decision.action === 'finish';
    return afterLogout(claim, answer, decision.rejections);
  }
}
