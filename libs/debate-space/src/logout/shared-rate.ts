import type { DebateSpaceStorage } from '../storage/storage.js';
import { endOf } from './queue-keys.js';
import { all, wait, type Steps } from './steps.js';

const numbered = (n: number): string => `rate:${String(Math.max(0, n)).padStart(15, '0')}`;

/**
 * Takes one of `requests` slots of any window of `perMs`, over all processes: the n-th request may go when the one
 * `requests` before it has left the window. A row per request, numbered without gaps: only one process can add the next.
 * @returns 0, or the milliseconds after which to ask again
 */
export function* tryAcquire(storage: DebateSpaceStorage, requests: number, perMs: number): Steps<number> {
  for (;;) {
    const now = storage.now();
    const ends = [{ limit: 1, reverse: true }, { limit: 2 }];
    const [last, first] = yield* wait(all(ends.map((end) => storage.range('rate:', endOf('rate:'), end))));
    const [newest = numbered(0)] = last?.[0] ?? [];
    const next = Number(newest.slice('rate:'.length)) + 1;
    const [before] = yield* wait(storage.get([numbered(next - requests)]));
    const waitMs = Number(before ?? -Infinity) + perMs - now;
    // More than a window: that row was written when the clock was ahead.
    if (waitMs >= 0 && waitMs <= 2 * perMs) return Math.max(1, Math.ceil(waitMs));
    const changes = new Map<string, string | undefined>([[numbered(next - requests), undefined]]);
    for (const [key, at] of first ?? [])
      if (key !== newest && Number(at) + perMs < now) changes.set(key, undefined);
    changes.set(numbered(next), String(now));
    if (yield* wait(storage.commit(new Map([[numbered(next), undefined]]), changes))) return 0;
  }
}
