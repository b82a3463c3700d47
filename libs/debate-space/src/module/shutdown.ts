import { Containment } from '../async/containment.js';
import { withTimeout } from '../async/with-timeout.js';
import type { LogoutRecorder } from '../logout/logout-recorder.js';
import type { Transport } from '../service/http/transport.js';
import type { Application } from './application.js';
import type { Runners } from './runners.js';
import type { SessionWatch } from './session-watch.js';

const DRAIN_MS = 5_000;
/** So much is left for it when the verdicts have taken the rest. */
const MIN_DRAIN_MS = 1_000;
/** All steps together: Docker kills after ten seconds. */
const MAX_MS = 9_000;
/** What each step has at least, however late it is. */
const MIN_STEP_MS = 50;

/**
 * Shuts an application down, from the sessions to the storage: decides what is open, delivers what is pending – for five
 * seconds at most –, and closes everything, within nine seconds. Never rejects.
 */
export async function shutDown(
  application: Application,
  recorder: LogoutRecorder,
  sessions: SessionWatch,
  runners: Runners,
  transport: Transport,
): Promise<void> {
  const containment = new Containment(application.emit);
  const begun = performance.now();

  /** A step that fails or does not answer must not keep the next ones from running. */
  async function step(work: () => unknown, limitMs = DRAIN_MS): Promise<void> {
    const awaited = async (): Promise<void> => {
      await work();
    };
    const done = containment.run<Promise<void>>('shutdown', awaited, undefined);
    const leftMs = Math.max(MIN_STEP_MS, begun + MAX_MS - performance.now());
    await withTimeout(done, Math.min(limitMs, leftMs), undefined);
  }

  await step(() => {
    recorder.close();
  });
  await step(() => sessions.close());
  const drainMs = Math.max(MIN_DRAIN_MS, begun + DRAIN_MS - performance.now());
  await step(() => runners.drain(drainMs), drainMs + MIN_DRAIN_MS);
  application.shutdown.abort();
  await step(() => runners.idle(DRAIN_MS));
  await step(() => reportUnfinished(application, recorder));
  await step(() => {
    transport.close();
  });
  await step(() => application.storage.close());
  application.events.complete();
}

async function reportUnfinished(
  { options, emit, storage }: Application,
  recorder: LogoutRecorder,
): Promise<void> {
  const { durable } = options.storage;
  const lost = await recorder.flush();
  const { waiting = 0 } = (options.worker ? await ifKnown(storage.counts('logout')) : undefined) ?? {};
  const pending = Math.max(waiting, lost);
  if (pending > 0) emit({ type: 'shutdown-incomplete', pending, lost: !durable || lost > 0 });
  const erasures = durable ? undefined : await ifKnown(storage.counts('erasure'));
  const count = (erasures?.waiting ?? 0) + (erasures?.parked ?? 0);
  if (count > 0) emit({ type: 'erasures-dropped', count });
}

/** As far as the storage can say. */
async function ifKnown<T>(answer: Promise<T>): Promise<T | undefined> {
  return withTimeout(
    answer.catch(() => undefined),
    MIN_DRAIN_MS,
    undefined,
  );
}
