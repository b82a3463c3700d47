import { setTimeout as pause } from 'node:timers/promises';
import type { Containment } from '../async/containment.js';
import { timeoutOrThrow } from '../async/with-timeout.js';
import type { LogoutRecorder } from '../logout/queue/logout-recorder.js';
import { nextLook } from './expiry-dates.js';
import { ANSWER_WITHIN_MS, type FindSession } from './registry-writer.js';
import type { ClaimedSession, SessionRegistry } from './session-registry.js';

export interface SweepContext {
  readonly registry: SessionRegistry;
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
  const { sid, uid, claim, endedAt, expiresAt } = session;
  if (endedAt === undefined) {
    const found = (await inTime(find(sid))).find((each) => each.uid === uid);
    const next = found && nextLook(found.session, expiresAt, Date.now(), sweepMs);
    if (next !== undefined) return inTime(registry.postpone(session, next));
    if (!(await inTime(registry.end(session, { claim })))) return;
  }
  const ago = endedAt === undefined ? 0 : registry.now() - endedAt;
  await recorder.record({ uid, reason: 'expired', endedAt: new Date(Date.now() - ago) });
  await inTime(registry.reported(session));
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return timeoutOrThrow(answer, ANSWER_WITHIN_MS);
}
