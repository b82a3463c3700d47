// Faults of the logout queue and its storage that this test is to find.
import { setTimeout as sleep } from 'node:timers/promises';
import type { InjectedFault, StorageFault } from './injected-faults.js';
import { claimedIn, dueRowsIn, isAdd, renews } from './logout-commits.js';

const LATE_MS = 50;
/** How long a claim takes, so that a kill meets it. */
const CLAIM_MS = 100;
const SLOW_CLAIM_MS = 1_200;
const KILLED_OFTEN = { kills: 24, endings: 900 };

/** The app reports users who log in again; the storage has no part in it. */
export const RENEWAL_REPORTED = 'renewal-reported';

export const LOGOUT_FAULTS: Readonly<Record<string, StorageFault>> = {
  [RENEWAL_REPORTED]: () => ({}),
  /** It says that it has a logout, and writes it a moment later: the answer leaves before the record is made. */
  'answered-first': (storage) => (checks, changes) => {
    if (!isAdd(checks)) return storage.commit(checks, changes);
    void sleep(LATE_MS).then(() => storage.commit(checks, changes));
    return true;
  },
  /** It says that it has a logout, and never writes it. */
  'never-written': (storage) => (checks, changes) => isAdd(checks) || storage.commit(checks, changes),
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
    const stalled = claimed.filter(({ position }, n) => {
      const text = texts[n];
      return text && (JSON.parse(text) as { position: string }).position !== position;
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
  /** A claim does not look whether another process was faster, and is slow, so that one is. */
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
      const isRenewal = renews(checks, changes, leases);
      const isMade = isRenewal || (await storage.commit(checks, changes));
      if (isRenewal || (isClaim && isMade)) for (const row of dueRowsIn(changes)) leases.add(row);
      return isMade;
    };
  },
};

export const logoutFaults: readonly InjectedFault[] = [
  { name: 'answered-first', under: 'lmdb', tell: /are gone/ },
  { name: 'answered-first', under: 'lmdb-answered', size: { kills: 6 }, tell: /are gone/ },
  { name: 'never-written', under: 'memory-unharmed', tell: /are gone/ },
  { name: RENEWAL_REPORTED, under: 'memory-unharmed', tell: /while their session lived/ },
  { name: 'claim-by-deletion', under: 'lmdb', size: KILLED_OFTEN, tell: /are gone/ },
  { name: 'stalled-once', under: 'redis-two', size: KILLED_OFTEN, tell: /are gone/ },
  { name: 'claim-unchecked', under: 'lmdb-two', size: { kills: 4, endings: 900 }, tell: /arrived again/ },
  { name: 'heartbeat-stops', under: 'slow-service', tell: /arrived again/ },
];
