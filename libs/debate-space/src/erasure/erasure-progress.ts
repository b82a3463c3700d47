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
import { ErasureError } from '../errors.js';
import type { ErasureProgress, ErasureStatus } from './erasure.js';
import type { ErasureRepository } from './erasure-repository.js';

/** How fast the limit lets jobs through: the rate limiter. */
export interface JobPace {
  readonly jobsPerMinute: number;
  /** For how long the limit of this process, or a pause, holds up the last of so many jobs, in milliseconds. */
  jobWaitMs(jobs: number): number | Promise<number>;
}

interface Look {
  readonly status: ErasureStatus;
  /** For how long the limit holds up the next user, and the last one. */
  readonly nextMs: number;
  readonly lastMs: number;
}

const EVERY_MS = 1_000;
const AT_MOST_EVERY_MS = 200;
/** The time over which the pace is measured. */
const WINDOW_MS = 60_000;

/** How the work on a reference goes, also when another process does it; ends when nothing more happens automatically. */
export function watchProgress(
  repository: ErasureRepository,
  reference: string,
  pace: JobPace,
  shutdownSignal: AbortSignal,
): Observable<ErasureProgress> {
  const changes = new Observable<void>((subscriber) =>
    repository.onChange(() => {
      subscriber.next();
    }),
  );
  const look = async (): Promise<Look | undefined> => {
    try {
      const status = await repository.status(reference);
      const nextMs = await pace.jobWaitMs(1);
      return { status, nextMs, lastMs: status.waiting > 0 ? await pace.jobWaitMs(status.waiting) : 0 };
    } catch (error) {
      if (error instanceof ErasureError) throw error;
      return undefined; // the next look may reach the storage again
    }
  };
  return defer(() => {
    if (shutdownSignal.aborted) return EMPTY;
    return merge(timer(0, EVERY_MS), changes.pipe(auditTime(AT_MOST_EVERY_MS))).pipe(
      exhaustMap(look),
      filter((found) => found !== undefined),
      map(withPace(pace.jobsPerMinute)),
      takeWhile(({ complete, waiting, finishedAt }) => !finishedAt && !(complete && waiting === 0), true),
      takeUntil(fromEvent(shutdownSignal, 'abort')),
    );
  });
}

/** Measures how the counts rise. A pause of the host's begins the measurement anew. */
function withPace(limitPerMinute: number): (look: Look) => ErasureProgress {
  let samples: readonly { readonly at: number; readonly ended: number }[] = [];
  return ({ status, nextMs, lastMs }) => {
    const at = performance.now();
    const ended = status.done + status.notFound + status.vetoed;
    const isPaused = status.state === 'paused';
    const isHeldUp = nextMs > 0 && ended === samples.at(-1)?.ended && !isPaused && status.waiting > 0;
    const recent = isPaused ? [] : samples.filter((sample) => at - sample.at <= WINDOW_MS);
    samples = [...recent, { at, ended }];
    const [first = { at, ended }] = samples;
    const perMs = at > first.at ? (ended - first.ended) / (at - first.at) : 0;
    const msLeft = Math.round(Math.max(lastMs, perMs > 0 ? status.waiting / perMs : 0));
    return {
      ...status,
      perMinute: Math.round(Math.min(perMs * 60_000, limitPerMinute)),
      ...((perMs > 0 || lastMs > 0) && { msLeft }),
      ...(isHeldUp && { waitMs: Math.ceil(nextMs) }),
    };
  };
}
