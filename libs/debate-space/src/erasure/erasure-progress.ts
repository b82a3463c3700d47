import {
  auditTime,
  catchError,
  defer,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  from,
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
import type { ErasureRegister } from './erasure-register.js';
import type { ErasureStorage } from './erasure-storage.js';

const EVERY_MS = 1_000;
const AT_MOST_EVERY_MS = 200;
/** The time over which the rate is measured. */
const WINDOW_MS = 60_000;

/** How the work on a reference goes, also when another process does it; ends when nothing more will happen by itself. */
export function watchProgress(
  register: ErasureRegister,
  storage: ErasureStorage,
  reference: string,
  closing: AbortSignal,
): Observable<ErasureProgress> {
  const changes = new Observable<void>((subscriber) =>
    storage.onChange(() => {
      subscriber.next();
    }),
  );
  const look = () =>
    from(register.status(reference)).pipe(
      catchError((error: unknown) => {
        if (error instanceof ErasureError) throw error;
        return EMPTY; // the storage cannot be reached; the next look may succeed
      }),
    );
  return defer(() => {
    if (closing.aborted) return EMPTY;
    const rate = new Rate();
    return merge(timer(0, EVERY_MS), changes.pipe(auditTime(AT_MOST_EVERY_MS))).pipe(
      exhaustMap(look),
      distinctUntilChanged((one, other) => JSON.stringify(one) === JSON.stringify(other)),
      map((status) => rate.of(status)),
      takeWhile((status) => !isOver(status), true),
      takeUntil(fromEvent(closing, 'abort')),
    );
  });
}

class Rate {
  #samples: readonly { readonly at: number; readonly over: number }[] = [];

  of(status: ErasureStatus): ErasureProgress {
    const at = performance.now();
    const over = status.done + status.notFound + status.vetoed;
    this.#samples = [...this.#samples.filter((sample) => at - sample.at <= WINDOW_MS), { at, over }];
    const [first = { at, over }] = this.#samples;
    const perMinute = at > first.at ? ((over - first.over) * 60_000) / (at - first.at) : 0;
    const left = perMinute > 0 ? { msLeft: Math.round((status.waiting / perMinute) * 60_000) } : {};
    return { ...status, perMinute: Math.round(perMinute), ...left };
  }
}

function isOver({ complete, waiting, finishedAt }: ErasureStatus): boolean {
  return finishedAt !== undefined || (complete && waiting === 0);
}
