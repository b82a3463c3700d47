import type { EndReason } from 'nestjs-session-end';
import type { LogoutRecorder } from '../logout/queue/logout-recorder.js';
import type { ClaimedSession, SessionRegistry, UserSession } from './session-registry.js';

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
