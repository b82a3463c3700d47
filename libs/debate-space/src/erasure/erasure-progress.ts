import {
  auditTime,
  catchError,
  concat,
  distinctUntilChanged,
  EMPTY,
  exhaustMap,
  from,
  merge,
  Observable,
  of,
  scan,
  takeWhile,
  timer,
} from 'rxjs';
import { ErasureError } from '../errors.js';
import type { ErasureProgress, ErasureStatus } from './erasure.js';
import type { ErasureLedger } from './erasure-ledger.js';
import type { ErasureRecords } from './erasure-records.js';

const EVERY_MS = 1_000;
const AT_MOST_EVERY_MS = 200;
/** Over so long the rate is taken. */
const WINDOW_MS = 60_000;

interface Sample {
  readonly at: number;
  readonly over: number;
}

interface Watched {
  readonly progress: ErasureProgress | undefined;
  readonly samples: readonly Sample[];
}

/** How the work on a reference goes, also when another process does it; ends when nothing more will happen by itself. */
export function watchProgress(
  ledger: ErasureLedger,
  records: ErasureRecords,
  reference: string,
): Observable<ErasureProgress> {
  const changes = new Observable<void>((subscriber) =>
    records.onChange(() => {
      subscriber.next();
    }),
  );
  const look = () =>
    from(ledger.status(reference)).pipe(
      catchError((error: unknown) => {
        if (error instanceof ErasureError) throw error;
        return EMPTY; // the engine is away; the next look may find it
      }),
    );
  return concat(
    of(undefined),
    merge(timer(EVERY_MS, EVERY_MS), changes.pipe(auditTime(AT_MOST_EVERY_MS))),
  ).pipe(
    exhaustMap(look),
    distinctUntilChanged((one, other) => JSON.stringify(one) === JSON.stringify(other)),
    scan(withRate, { progress: undefined, samples: [] }),
    exhaustMap(({ progress }) => (progress ? of(progress) : EMPTY)),
    takeWhile((progress) => !isOver(progress), true),
  );
}

function withRate({ samples }: Watched, status: ErasureStatus): Watched {
  const at = performance.now();
  const over = status.done + status.alreadyGone + status.vetoed;
  const recent = [...samples.filter((sample) => at - sample.at <= WINDOW_MS), { at, over }];
  const [first = { at, over }] = recent;
  const perMinute = at > first.at ? ((over - first.over) * 60_000) / (at - first.at) : 0;
  const msLeft = perMinute > 0 ? { msLeft: Math.round((status.waiting / perMinute) * 60_000) } : {};
  return { progress: { ...status, perMinute: Math.round(perMinute), ...msLeft }, samples: recent };
}

function isOver({ complete, waiting, finishedAt }: ErasureStatus): boolean {
  return finishedAt !== undefined || (complete && waiting === 0);
}
