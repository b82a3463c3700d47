import type { SessionRecord } from '../session-options.js';
import { timeoutOrThrow } from '../../async/with-timeout.js';
import type { DetectorContext } from '../verdict/detector-context.js';
import { ANSWER_WITHIN_MS, type SessionIndexing } from './registry-writer.js';
import { nextLook } from './session-expiry.js';
import type { SessionRemoval, UserSession } from './session-registry.js';

export interface SweepContext
  extends SessionIndexing, Pick<DetectorContext, 'recorder' | 'containment' | 'waits'> {
  /** The session as the stores have it now, if its user is still this one. Rejects when they cannot be read. */
  readonly lookUp: (session: UserSession) => Promise<SessionRecord | undefined>;
  /** How often the sweep runs. */
  readonly sweepMs: number;
}

const BATCH = 50;
/** For this time nobody else looks at what this process has claimed; what fails here is claimed again then. */
const LEASE_MS = 60_000;

/**
 * Finds users whose session has expired. Of all instances, one claims each session whose time has come, looks whether it
 * is really gone, and reports it. Never rejects.
 */
export async function sweepExpired(context: SweepContext): Promise<void> {
  const { registry, containment, waits } = context;
  let claimed: readonly UserSession[];
  do {
    const claim = () => inTime(registry.claimExpired(BATCH, LEASE_MS));
    claimed = await containment.run<Promise<readonly UserSession[]>>('session registry', claim, []);
    const look = (session: UserSession): unknown =>
      containment.run<unknown>('session.expiry', () => lookAt(session, context), undefined);
    await Promise.all(claimed.map(look));
  } while (claimed.length > 0 && !waits.isClosed);
}

async function lookAt(session: UserSession, context: SweepContext): Promise<void> {
  const { registry, recorder, containment, lastOnly, lookUp, sweepMs } = context;
  const alive = await inTime(lookUp(session));
  if (alive) {
    await inTime(registry.renew(session, nextLook(alive, Date.now(), sweepMs)));
    return;
  }
  const record = async (): Promise<void> => {
    await recorder.record({ uid: session.uid, reason: 'expired', at: performance.now() }, []);
  };
  const remove = (): Promise<SessionRemoval> => inTime(registry.remove(session));
  // Each end counts: recorded first, it is not lost with a process that dies in between.
  if (!lastOnly) await record();
  // Without an answer nobody knows whether it was removed, and so whether anybody will claim it again: it is reported.
  const { removed, others } = await remove().catch(async (error: unknown) => {
    containment.report('session registry', error);
    return { removed: true, others: (await remove().catch(() => undefined))?.others ?? false };
  });
  if (lastOnly && removed && !others) await record();
}

function inTime<T>(answer: Promise<T>): Promise<T> {
  return timeoutOrThrow(answer, ANSWER_WITHIN_MS);
}
