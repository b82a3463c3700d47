import {
  auditTime,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  fromEvent,
  map,
  merge,
  Observable,
  takeUntil,
  takeWhile,
  timer,
} from 'rxjs';
import { ErasureError } from '../../errors.js';
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureProgress, ErasureStatus } from '../erasure.js';

/** How fast the limit lets jobs through: the rate limiter. */
export interface JobPace {
  readonly jobsPerMinute: number;
  /** For how long the limit holds up the last of so many jobs, in milliseconds. */
  jobWaitMs(jobs: number): Promise<number>;
}

interface Look {
  readonly status: ErasureStatus;
  /** For how long the limit holds up the next user, and the last one. */
  readonly nextMs: number;
  readonly lastMs: number;
}

const EVERY_MS = 1_000;
const AT_MOST_EVERY_MS = 200;
interface Sample {
  readonly at: number;
  readonly over: number;
}

/** The time over which the rate is measured. */
const WINDOW_MS = 60_000;

/** How the work on a reference goes, also when another process does it; ends when nothing more happens automatically. */
export function watchProgress(
  storage: ErasureStorage,
  reference: string,
  pace: JobPace,
  shutdownSignal: AbortSignal,
): Observable<ErasureProgress> {
  const changes = new Observable<void>((subscriber) =>
    storage.onChange(() => {
      subscriber.next();
    }),
  );
  // A storage that cannot be reached may be reached by the next look.
  const look = async (): Promise<Look | undefined> => {
    try {
      const status = await storage.status(reference);
      const { waiting } = status;
      const [nextMs, lastMs] = await Promise.all([1, waiting].map((jobs) => pace.jobWaitMs(jobs)));
      return { status, nextMs: nextMs ?? 0, lastMs: waiting > 0 ? (lastMs ?? 0) : 0 };
    } catch (error) {
      if (error instanceof ErasureError) throw error;
      return undefined;
    }
  };
  return defer(() => {
    if (shutdownSignal.aborted) return EMPTY;
    return merge(timer(0, EVERY_MS), changes.pipe(auditTime(AT_MOST_EVERY_MS))).pipe(
      exhaustMap(look),
      filter((found) => found !== undefined),
      map(withRate(pace.jobsPerMinute)),
      takeWhile(({ complete, waiting, finishedAt }) => !finishedAt && !(complete && waiting === 0), true),
      takeUntil(fromEvent(shutdownSignal, 'abort')),
    );
  });
}

function withRate(limitPerMinute: number): (look: Look) => ErasureProgress {
  let samples: readonly Sample[] = [];
  let last: Sample & { readonly isHeld: boolean } = { at: performance.now(), over: 0, isHeld: true };
  /** What does not count: while the limit or a pause holds up the work, its pace does not show. */
  const held = { ms: 0, over: 0 };
  return ({ status, nextMs, lastMs }) => {
    const at = performance.now();
    const over = status.done + status.notFound + status.vetoed;
    const isHeld = nextMs > 0 || status.state === 'paused';
    if (isHeld || last.isHeld) {
      held.ms += at - last.at;
      held.over += over - last.over;
    }
    const isWaiting = nextMs > 0 && over === last.over && status.state !== 'paused' && status.waiting > 0;
    last = { at, over, isHeld };
    const sample = { at: at - held.ms, over: over - held.over };
    samples = [...samples.filter((earlier) => sample.at - earlier.at <= WINDOW_MS), sample];
    const [first = sample] = samples;
    const perMs = sample.at > first.at ? (sample.over - first.over) / (sample.at - first.at) : 0;
    const msLeft = Math.round(Math.max(lastMs, perMs > 0 ? status.waiting / perMs : 0));
    return {
      ...status,
      perMinute: Math.round(Math.min(perMs * 60_000, limitPerMinute)),
      ...(perMs > 0 || lastMs > 0 ? { msLeft } : {}),
      ...(isWaiting ? { waitMs: Math.ceil(nextMs) } : {}),
    };
  };
}
