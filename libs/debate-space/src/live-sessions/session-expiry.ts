import type { SessionRecord, EndReason } from 'nestjs-session-end';
import { setTimeout as pause } from 'node:timers/promises';
import type { Containment } from '../async/containment.js';
import { timeoutOrThrow } from '../async/with-timeout.js';
import type { LogoutRecorder } from '../logout/queue/logout-recorder.js';
import { ANSWER_WITHIN_MS, type FindSession, type SessionIndexing } from './registry-writer.js';
import type { ClaimedSession, SessionRegistry, UserSession } from './session-registry.js';

/** What stores give a session whose cookie has no end: connect-redis, connect-pg-simple and memorystore a day. */
const DAY_MS = 24 * 60 * 60 * 1000;
const LATEST_MS = 60 * 60_000;
/** A session that is used with each click is registered once in this time. */
const RENEW_EVERY_MS = 60_000;
/** Stores may keep the date of a cookie in seconds. */
const ACCURACY_MS = 1_000;

/** When a session expires, by its cookie, in milliseconds since 1970. A store that touches it may know better. */
export function expiryOf(session: SessionRecord, now: number): number {
  return cookieDate(session, 'expires') ?? now + DAY_MS;
}

/**
 * When a session expires that a request has just loaded. Its date in the row may be stale: connect-redis and
 * connect-pg-simple do not write the date when express-session touches the session, which it does with each answer.
 * @param isTouched whether the store can be told that a session is used
 */
export function loadedExpiry(session: SessionRecord, now: number, isTouched: boolean): number {
  // `@fastify/session` gives the cookie a new date when it loads the session, and may never save it.
  const stored = cookieDate(session, 'originalExpires');
  const { originalMaxAge } = cookieOf(session);
  if (stored === undefined && isTouched && typeof originalMaxAge === 'number') return now + originalMaxAge;
  return stored ?? expiryOf(session, now);
}

/**
 * How much later a session must expire to be registered again. A session that expires soon is registered more often, so
 * that it does not count as expired while it is used.
 */
export function renewalInterval(expiresAt: number, now: number): number {
  return Math.min(Math.max(0, (expiresAt - now) / 3), RENEW_EVERY_MS);
}

/**
 * When to look again at a session that is in the store although its time has come: soon if that was just now, then less
 * often. A row whose date is earlier than the registered one was touched since: it lives as long as the store has it.
 * @param registered the date of its cookie, as the registry has it
 * @returns `undefined` when it has expired: some stores return expired sessions
 */
export function nextLook(
  session: SessionRecord,
  registered: number,
  now: number,
  soonestMs: number,
): number | undefined {
  // Without a date in the row a handler may have given it one that was not saved, but told by a touch.
  const expiry = cookieDate(session, 'expires') ?? Infinity;
  if (expiry <= now && expiry >= registered - ACCURACY_MS) return undefined;
  const next = now + Math.min(Math.max((now - registered) / 2, soonestMs), LATEST_MS);
  // Do not wait for that date: a handler may have shortened the session without saving it.
  return expiry > now ? Math.min(next, expiry) : next;
}

type Cookie = Partial<Record<'expires' | 'originalExpires' | 'originalMaxAge', unknown>>;

function cookieOf(session: SessionRecord): Cookie {
  return (session.cookie as Cookie | null | undefined) ?? {};
}

function cookieDate(session: SessionRecord, name: 'expires' | 'originalExpires'): number | undefined {
  const date = cookieOf(session)[name];
  if (!(date instanceof Date) && typeof date !== 'string') return undefined;
  const time = typeof date === 'string' ? Date.parse(date) : date.getTime();
  return Number.isNaN(time) ? undefined : time;
}

export interface SweepContext extends SessionIndexing {
  readonly recorder: Pick<LogoutRecorder, 'record'>;
  readonly containment: Containment;
  readonly find: FindSession;
  /** How often the sweep runs. */
  readonly sweepMs: number;
  /** Aborted when the app shuts down. */
  readonly signal: AbortSignal;
}

const BATCH = 50;
/** For this time nobody else looks at what this process has claimed; what fails here is claimed again then. */
const LEASE_MS = 60_000;

/** Sweeps again and again, until the app shuts down. Never rejects. */
export async function keepSweeping(context: SweepContext): Promise<void> {
  const { signal, sweepMs } = context;
  while (!signal.aborted) {
    await sweepExpired(context);
    await pause(sweepMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/**
 * Finds users whose session has expired, and ends that a process has not reported because it died. Of all instances, one
 * claims each session whose time has come, looks whether it is really gone, and reports it. Never rejects.
 */
export async function sweepExpired(context: SweepContext): Promise<void> {
  const { registry, containment, signal } = context;
  let claimed: readonly ClaimedSession[];
  do {
    const claim = () => inTime(registry.claimExpired(BATCH, LEASE_MS));
    claimed = await containment.run<Promise<readonly ClaimedSession[]>>('session registry', claim, []);
    const look = (session: ClaimedSession): unknown =>
      containment.run<unknown>('session.expiry', () => lookAt(session, context), undefined);
    await Promise.all(claimed.map(look));
  } while (claimed.length > 0 && !signal.aborted);
}

async function lookAt(session: ClaimedSession, context: SweepContext): Promise<void> {
  const { registry, recorder, find, sweepMs } = context;
  const { sid, uid, endedAt, expiresAt } = session;
  if (endedAt !== undefined) {
    // Its end counts, or nobody would have left it to a sweep.
    const ago = registry.now() - endedAt;
    await recorder.record({ uid, reason: 'expired', endedAt: new Date(Date.now() - ago) });
    await inTime(registry.reported(session));
    return;
  }
  const found = (await inTime(find(sid))).find((each) => each.uid === uid);
  const next = found && nextLook(found.session, expiresAt, Date.now(), sweepMs);
  if (next !== undefined) await inTime(registry.postpone(session, next));
  else await inTime(reportEnd(session, 'expired', context));
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return timeoutOrThrow(answer, ANSWER_WITHIN_MS);
}

/** A process that has not reported an end by then has died, or its storage has not answered. */
export const REPORT_WITHIN_MS = 30_000;

interface ReportContext {
  readonly registry: SessionRegistry;
  readonly recorder: Pick<LogoutRecorder, 'record'>;
  readonly lastOnly: boolean;
}

/** Reports the end of a session that no request ends, if it counts and no other instance reports it. */
export async function reportEnd(
  session: UserSession & Partial<Pick<ClaimedSession, 'claim'>>,
  reason: EndReason,
  { registry, recorder, lastOnly }: ReportContext,
): Promise<void> {
  const { uid, claim } = session;
  const options = { leaseMs: REPORT_WITHIN_MS, lastOnly, ...(claim === undefined ? {} : { claim }) };
  const { isFirst, others } = await registry.end(session, options);
  if (!isFirst || others) return;
  await recorder.record({ uid, reason, endedAt: new Date() });
  await registry.reported(session);
}
