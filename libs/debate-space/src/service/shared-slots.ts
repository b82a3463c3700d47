import type { Storage } from 'durable-jobs';

const [FROM, TO] = ['rate:', 'rate:~'];
const numberOf = (key = numbered(0)): number => Number(key.slice(FROM.length));
const numbered = (n: number): string => `${FROM}${String(Math.max(0, n)).padStart(15, '0')}`;

/**
 * Takes one of `requests` slots of any window of `perMs`, over all processes: the n-th request may go when the one
 * `requests` before it has left the window. A row per request, numbered without gaps: only one process can add the next.
 * @returns 0, or the milliseconds after which to ask again
 */
export async function tryAcquireSlot(storage: Storage, requests: number, perMs: number): Promise<number> {
  for (;;) {
    const now = storage.now();
    const [last, first] = await Promise.all([
      storage.range(FROM, TO, { limit: 1, reverse: true }),
      storage.range(FROM, TO, { limit: 2 }),
    ]);
    const [newest] = last[0] ?? [];
    const next = numberOf(newest) + 1;
    const [before] = await storage.get([numbered(next - requests)]);
    const waitMs = Number(before ?? -Infinity) + perMs - now;
    // More than a window: that row was written when the clock was ahead.
    if (waitMs >= 0 && waitMs <= 2 * perMs) return Math.max(1, Math.ceil(waitMs));
    const changes = new Map<string, string | undefined>([[numbered(next - requests), undefined]]);
    for (const [key, at] of first)
      if (key !== newest && Number(at) + perMs < now) changes.set(key, undefined);
    changes.set(numbered(next), String(now));
    if (await storage.commit(new Map([[numbered(next), undefined]]), changes)) return 0;
  }
}

/** Takes no slot. @returns milliseconds until the request after `ahead` others could have one, if nobody else asks */
export async function slotWaitMs(
  storage: Storage,
  ahead: number,
  requests: number,
  perMs: number,
): Promise<number> {
  const [[newest] = []] = await storage.range(FROM, TO, { limit: 1, reverse: true });
  const [before] = await storage.get([numbered(numberOf(newest) + 1 + (ahead % requests) - requests)]);
  const waitMs = Math.max(0, Number(before ?? -Infinity) + perMs - storage.now());
  return waitMs + Math.floor(ahead / requests) * perMs;
}
