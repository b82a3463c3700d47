import { setTimeout as pause } from 'node:timers/promises';
import type { Containment } from '../async/containment.js';
import type { Emit } from '../events.js';
import type { LogoutRecorder } from '../logout/logout-recorder.js';
import type { DueSession, Storage } from '../storage/storage.js';
import { nextLook } from './expiry-dates.js';
import type { FindSession, LiveSessionTable } from './live-session-table.js';

export interface SweepContext {
  readonly storage: Storage;
  readonly sessions: LiveSessionTable;
  readonly recorder: Pick<LogoutRecorder, 'recordExpired'>;
  readonly containment: Containment;
  readonly emit: Emit;
  readonly find: FindSession;
  /** How often the sweep runs, in milliseconds. */
  readonly sweepMs: number;
  /** Aborted when the app shuts down. */
  readonly signal: AbortSignal;
}

const BATCH = 50;
/** For this time nobody else looks for a session that this process has claimed. */
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
 * Finds users whose session has expired. Of all instances, one claims each session whose time has come, looks into the
 * host's store whether it is really gone, and reports it. Never rejects.
 */
export async function sweepExpired(context: SweepContext): Promise<void> {
  const { storage, containment, signal } = context;
  let due: readonly DueSession[];
  do {
    const claim = () => storage.dueSessions(BATCH, LEASE_MS);
    due = await containment.run<Promise<readonly DueSession[]>>('live sessions', claim, []);
    const look = (session: DueSession) =>
      containment.run<unknown>('session.expiry', () => lookAt(session, context), undefined);
    await Promise.all(due.map(look));
  } while (due.length > 0 && !signal.aborted);
}

async function lookAt(due: DueSession, context: SweepContext): Promise<void> {
  const { storage, sessions, recorder, find, sweepMs, emit } = context;
  const session = sessions.open(due);
  if (!session) {
    emit({ type: 'record-unverified', record: 'live session' });
    await storage.endSession(due, undefined, due.token);
    return;
  }
  const { sid, uid } = session;
  const found = (await find(sid)).find((each) => each.uid === uid);
  const now = Date.now();
  const lookAt = found && nextLook(found.session, due.expiresAt, now, sweepMs);
  if (lookAt === undefined) await recorder.recordExpired(due, uid);
  else await storage.postponeSession(due, lookAt - now);
}
