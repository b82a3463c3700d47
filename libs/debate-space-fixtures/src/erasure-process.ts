import type { Storage } from 'durable-jobs';
import type { DebateSpaceEvent } from '../../debate-space/src/events.js';
import { ErasureControl } from '../../debate-space/src/erasure/queue/erasure-control.js';
import { ERASURE_FAMILIES } from '../../debate-space/src/erasure/queue/erasure-records.js';
import { ErasureMaintenance } from '../../debate-space/src/erasure/queue/erasure-maintenance.js';
import { ErasureQueue } from '../../debate-space/src/erasure/queue/erasure-queue.js';
import { ErasureRequests } from '../../debate-space/src/erasure/queue/erasure-requests.js';
import { ErasureStorage } from '../../debate-space/src/erasure/queue/erasure-storage.js';
import { Secret } from '../../debate-space/src/secrets/secret.js';
import { uidCipher } from '../../debate-space/src/secrets/uid-cipher.js';
import { Clocks } from './clocks.js';
import { openMemory } from './outbox-engines.js';

export const DAY_MS = 86_400_000;
export const YEAR_MS = 365 * DAY_MS;
export const RETENTION_MS = 3 * YEAR_MS;

/** The erasures of one process, on a storage that it may share with others. */
export function erasureProcess(
  shared: Storage,
  clocks: Clocks,
  storageKeys = ['a key'],
  events: DebateSpaceEvent[] = [],
) {
  // Each process has a clock of its own, which may be wrong.
  let aheadMs = 0;
  const own: Storage = {
    get: (keys) => shared.get(keys),
    range: (from, to, options) => shared.range(from, to, options),
    count: (family) => shared.count(family),
    commit: (checks, changes) => shared.commit(checks, changes),
    now: () => clocks.storage + aheadMs,
    close: () => shared.close(),
  };
  const uids = uidCipher(
    storageKeys.map((key) => new Secret(key)),
    'app',
  );
  const emit = (event: DebateSpaceEvent): void => void events.push(event);
  const storage = new ErasureStorage(own, { uids, overdueAfterMs: 7 * DAY_MS, emit });
  const ages = [7 * DAY_MS, 21 * DAY_MS];
  const maintenance = new ErasureMaintenance(storage, ages, RETENTION_MS, emit);
  return {
    storage,
    uids,
    events,
    requests: new ErasureRequests(storage),
    queue: new ErasureQueue(storage, maintenance),
    control: new ErasureControl(storage),
    setClock: (ms: number): void => {
      aheadMs = ms;
    },
  };
}

export type ErasureProcess = ReturnType<typeof erasureProcess>;

/** Two processes that share a storage in memory, with {@link Clocks} of their own. */
export function twoErasureProcesses() {
  const clocks = new Clocks();
  const shared = openMemory();
  return { clocks, shared, one: erasureProcess(shared, clocks), other: erasureProcess(shared, clocks) };
}

/** All rows of erasures. */
export async function erasureRows(storage: Storage): Promise<readonly (readonly [string, string])[]> {
  const rows: (readonly [string, string])[] = [];
  for (const family of ERASURE_FAMILIES)
    rows.push(...(await storage.range(`${family}:`, `${family};`, { limit: 100_000 })));
  return rows;
}
