import {
  auditTime,
  defer,
  distinctUntilChanged,
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
import type { ErasureStorage } from './erasure-storage.js';
import type { ErasureProgress, ErasureStatus } from './erasure.js';

const EVERY_MS = 1_000;
const AT_MOST_EVERY_MS = 200;
/** The time over which the rate is measured. */
const WINDOW_MS = 60_000;

/** How the work on a reference goes, also when another process does it; ends when nothing more happens automatically. */
export function watchProgress(
  storage: ErasureStorage,
  reference: string,
  closing: AbortSignal,
): Observable<ErasureProgress> {
  const changes = new Observable<void>((subscriber) =>
    storage.onChange(() => {
      subscriber.next();
    }),
  );
  // A storage that cannot be reached may be reached by the next look.
  const look = () =>
    storage.status(reference).catch((error: unknown) => {
      if (error instanceof ErasureError) throw error;
      return undefined;
    });
  return defer(() => {
    if (closing.aborted) return EMPTY;
    return merge(timer(0, EVERY_MS), changes.pipe(auditTime(AT_MOST_EVERY_MS))).pipe(
      exhaustMap(look),
      filter((status) => status !== undefined),
      distinctUntilChanged((one, other) => JSON.stringify(one) === JSON.stringify(other)),
      map(withRate()),
      takeWhile(({ complete, waiting, finishedAt }) => !finishedAt && !(complete && waiting === 0), true),
      takeUntil(fromEvent(closing, 'abort')),
    );
  });
}

function withRate(): (status: ErasureStatus) => ErasureProgress {
  let samples: readonly { readonly at: number; readonly over: number }[] = [];
  return (status) => {
    const at = performance.now();
    const over = status.done + status.notFound + status.vetoed;
    samples = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), { at, over }];
    const [first = { at, over }] = samples;
    const perMinute = at > first.at ? ((over - first.over) * 60_000) / (at - first.at) : 0;
    const left = perMinute > 0 ? { msLeft: Math.round((status.waiting / perMinute) * 60_000) } : {};
    return { ...status, perMinute: Math.round(perMinute), ...left };
  };
}
