// Faults of the logout queue and its storage that this test is to find.
import { setTimeout as sleep } from 'node:timers/promises';
import type { StorageValues } from 'nestjs-debate-space';
import type { InjectedFault, StorageFault } from './injected-faults.js';
import { claimedIn, dueRowsIn, heldIn, isRelease, renews } from './logout-commits.js';

const LATE_MS = 50;
/** How long a claim takes, so that a kill meets it. */
const CLAIM_MS = 100;
const SLOW_CLAIM_MS = 1_200;
const KILLED_OFTEN = { kills: 24, endings: 900 };

export const LOGOUT_FAULTS: Readonly<Record<string, StorageFault>> = {
  /** The session ends first, and the storage hears of it afterwards. */
  'end-first': (storage) => {
    const unwritten = new Map<string, [checks: StorageValues, changes: StorageValues]>();
    return (checks, changes) => {
      const held = heldIn(checks);
      if (held !== undefined && checks.get(held) === undefined) {
        unwritten.set(held, [checks, changes]);
        return true;
      }
      const hold = held === undefined ? undefined : unwritten.get(held);
      if (held === undefined || !hold) return storage.commit(checks, changes);
      unwritten.delete(held);
      if (isRelease(checks, changes))
        void sleep(LATE_MS).then(async () => {
          await storage.commit(...hold);
          await storage.commit(checks, changes);
        });
      return true;
    };
  },
  /** It says that it has an entry, and writes it a moment later. */
  'written-late': (storage) => (checks, changes) => {
    if (heldIn(checks) === undefined) return storage.commit(checks, changes);
    void sleep(LATE_MS).then(() => storage.commit(checks, changes));
    return true;
  },
  /** The end is proven, and the storage does not hear of it: it waits for the lease of a process that lives. */
  'release-undone': (storage) => (checks, changes) =>
    isRelease(checks, changes) || storage.commit(checks, changes),
  /** What is taken out for delivery is gone, whether it arrives or not. */
  'claim-by-deletion': (storage) => (checks, changes) => {
    const records = claimedIn(checks, storage.now()).map(({ record }) => [record, undefined] as const);
    return storage.commit(checks, new Map([...changes, ...records]));
  },
  /** What a process died over is not given out again. */
  'stalled-once': (storage) => async (checks, changes) => {
    const claimed = claimedIn(checks, storage.now());
    if (claimed.length === 0) return storage.commit(checks, changes);
    const texts = await storage.get(claimed.map(({ record }) => record));
    const stalled = claimed.filter(({ dueAt }, n) => {
      const text = texts[n];
      return text && (JSON.parse(text) as { dueAt: number }).dueAt !== dueAt;
    });
    if (stalled.length > 0) {
      const gone = stalled.flatMap(({ due, record }) => [
        [due, undefined] as const,
        [record, undefined] as const,
      ]);
      await storage.commit(new Map(), new Map(gone));
      return false;
    }
    const isMade = await storage.commit(checks, changes);
    await sleep(CLAIM_MS);
    return isMade;
  },
  /**
   * A claim does not look whether another process was faster, and is slow, so that one is: processes leave each other's
   * logouts alone for a second.
   */
  'claim-unchecked': (storage) => async (checks, changes) => {
    if (claimedIn(checks, storage.now()).length === 0) return storage.commit(checks, changes);
    await sleep(SLOW_CLAIM_MS);
    return storage.commit(new Map(), changes);
  },
  /** The heartbeat stops, and nobody notices: a lease that was renewed ends when it would have ended. */
  'heartbeat-stops': (storage) => {
    const leases = new Set<string>();
    return async (checks, changes) => {
      const isClaim = claimedIn(checks, storage.now()).length > 0;
      const isRenewal = renews(checks, leases);
      const isMade = isRenewal || (await storage.commit(checks, changes));
      if (isRenewal || (isClaim && isMade)) for (const row of dueRowsIn(changes)) leases.add(row);
      return isMade;
    };
  },
  /** A row that was left behind counts like the one that took its place. */
  'turn-ignored': (storage) => {
    const turns = new Map<string | undefined, string>();
    return {
      range: async (...range) => {
        const rows = await storage.range(...range);
        for (const [key, turn] of rows) if (key.startsWith('due:')) turns.set(key.split(':')[2], turn);
        return rows;
      },
      get: async (keys) => {
        const texts = await storage.get(keys);
        const families = new Set(keys.map((key) => key.split(':')[0]));
        const isClaim = [...families].join() === 'pending,held';
        return texts.map((text, n) => {
          const turn = isClaim && text && turns.get(keys[n]?.split(':')[1]);
          return turn ? JSON.stringify({ ...(JSON.parse(text) as object), turn: Number(turn) }) : text;
        });
      },
    };
  },
};

export const logoutFaults: readonly InjectedFault[] = [
  { name: 'end-first', under: 'lmdb', tell: /are gone/ },
  { name: 'written-late', under: 'lmdb', tell: /are gone/ },
  { name: 'release-undone', under: 'memory-unharmed', tell: /still wait/ },
  { name: 'claim-by-deletion', under: 'lmdb', size: KILLED_OFTEN, tell: /are gone/ },
  { name: 'stalled-once', under: 'redis-two', size: KILLED_OFTEN, tell: /are gone/ },
  { name: 'claim-unchecked', under: 'lmdb-two', size: { kills: 4, endings: 900 }, tell: /arrived again/ },
  { name: 'heartbeat-stops', under: 'slow-service', tell: /arrived again/ },
  { name: 'turn-ignored', under: 'slow-service', tell: /arrived again/ },
];
