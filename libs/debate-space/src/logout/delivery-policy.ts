import { fullJitter } from '../jobs/circuit-breaker.js';
import { MAX_RETRY_AFTER_MS } from '../service/http/service-pause.js';
import type { Contradiction } from '../service/http/body.js';
import { meaningOf, NOT_FOUND, statusText, type AnswerKind } from '../service/http/status-table.js';
import type { Claim } from '../storage/storage.js';

/** The result of one attempt at delivery. */
export interface DeliveryAnswer {
  /** HTTP status; absent when no whole answer came. */
  readonly status?: number;
  /** Why the body says that the logout did not happen. */
  readonly contradiction?: Contradiction | undefined;
  /** Why no answer came, such as `ECONNREFUSED` or `TIMEOUT`. */
  readonly reason?: string;
  /** Whether it failed on this side, before anything was sent. */
  readonly local?: boolean;
  /** Whether the shutdown of the app interrupted it: it does not count as an attempt. */
  readonly aborted?: boolean;
  readonly retryAfterMs?: number;
  /** The service's clock minus this one's, in milliseconds. */
  readonly clockSkewMs?: number;
}

export type Decision =
  | { readonly action: 'finish' }
  | (Setback & { readonly action: 'retry'; readonly delayMs: number })
  | (Setback & { readonly action: 'park'; readonly hint: string });

interface Setback {
  /** For the whole queue, in milliseconds. */
  readonly pauseMs: number;
  /** How many attempts the service has answered with 400, this one included. */
  readonly rejections: number;
}

const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 5 * 60_000;
const MAX_REJECTIONS = 3;
const CLOCK_TOLERANCE_MS = 30_000;

/**
 * Decides what follows an attempt. Back-Channel Logout 1.0, section 2.5: retransmit after a delay, and only if the failure may be
 * recoverable.
 * @param job how far delivery had come *before* this attempt
 * @param random a number from 0 to 1
 */
export function decide(
  answer: DeliveryAnswer,
  job: Pick<Claim, 'attempts' | 'rejections' | 'ageMs'>,
  giveUpAfterMs: number,
  random = Math.random(),
): Decision {
  const { status } = answer;
  const kind = kindOf(answer);
  if (kind === 'done') return { action: 'finish' };

  const isRefused = kind === 'refused';
  const rejections = job.rejections + (isRefused && status === 400 ? 1 : 0);
  const retryAfterMs = Math.min(answer.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS);
  const jitter = fullJitter(job.attempts + 1, FIRST_DELAY_MS, MAX_DELAY_MS, random);
  const waitMs = Math.max(jitter, retryAfterMs);
  const pausesAll = kind === 'busy' || (seemsDown(answer) && retryAfterMs > 0);
  // Limited: one wrong header must not stop the queue for years. The other logouts pause even if this one is parked.
  const setback = { pauseMs: pausesAll ? Math.min(waitMs, giveUpAfterMs) : 0, rejections };
  const recoverable = !isRefused || (status === 400 && rejections < MAX_REJECTIONS);
  if (!recoverable) return { action: 'park', ...setback, hint: hintFor(answer) };

  const leftMs = giveUpAfterMs - job.ageMs;
  if (leftMs <= 0)
    return { action: 'park', ...setback, hint: `it is older than logout.giveUpAfterMs; ${hintFor(answer)}` };
  return { action: 'retry', ...setback, delayMs: Math.min(waitMs, leftMs) };
}

function kindOf({ status, contradiction }: DeliveryAnswer): AnswerKind {
  return status === undefined ? 'away' : meaningOf({ status, contradiction }).kind;
}

/**
 * Whether the logout route did not answer, but something in its place, such as a maintenance page or a gateway; or the
 * route took the logout, and says that it was not done.
 */
export function isUnexpected(answer: DeliveryAnswer): boolean {
  const kind = kindOf(answer);
  return kind === 'elsewhere' || kind === 'denied';
}

/** Whether the service does not serve at all, and not only this one logout. A local failure says nothing about it. */
export function seemsDown(answer: DeliveryAnswer): boolean {
  const kind = kindOf(answer);
  return answer.local !== true && (kind === 'away' || kind === 'elsewhere');
}

/** `500`, `ECONNREFUSED`, `403 with a web page`: for events and logs. */
export function causeOf({ status, contradiction, reason = 'no answer' }: DeliveryAnswer): string {
  return status === undefined ? reason : statusText({ status, contradiction });
}

/** The most likely fix. */
export function hintFor(answer: DeliveryAnswer): string {
  const { status, local = false, clockSkewMs = 0 } = answer;
  const kind = kindOf(answer);
  if (local) return 'see the warning of the function that failed, and correct it';
  if (kind === 'denied') return 'the service did not log the user out; ask its operator';
  if (status === undefined || status >= 500 || kind === 'busy') return 'see that the service is up';
  if (status >= 300 && status < 400)
    return 'a redirect is never followed; give the address it leads to as authUrl';
  if (NOT_FOUND.has(status)) return 'there is no such logout route; check applicationName and authUrl';
  if (status === 405) return 'the address does not accept POST; check authUrl';
  if (kind !== 'refused') return 'something else than the service answers; check authUrl';
  if (status === 400 && Math.abs(clockSkewMs) > CLOCK_TOLERANCE_MS) {
    return `the clocks differ by ${Math.round(Math.abs(clockSkewMs) / 1000)} s; set this machine's clock`;
  }
  if (status === 400 || status === 401 || status === 403)
    return 'the service refuses the logout token; check secretKey, secretKeyEncoding, logout.algorithm, issuer and audience';
  return 'the service refuses this logout; check secretKey and logout.*, then ask its operator';
}
