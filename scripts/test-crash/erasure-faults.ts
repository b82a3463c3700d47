import type { StorageValues } from 'nestjs-debate-space';
import type { InjectedFault, StorageFault } from './injected-faults.js';

/** So many receipts are written for one that is not. */
const WRITTEN_BETWEEN = 7;

export const ERASURE_FAULTS: Readonly<Record<string, StorageFault>> = {
  /** It says that an erasure is finished, and now and then forgets it. */
  'finish-forgotten': (storage) => {
    let finished = 0;
    return (checks, changes) => {
      if (written(changes, 'erasurereceipt').length > 0) {
        finished += 1;
        if (finished % (WRITTEN_BETWEEN + 1) === 0) return true;
      }
      return storage.commit(checks, changes);
    };
  },
  /** The first part of a list passes for all of it, and is carried out. */
  'begun-early': (storage) => (checks, changes) => {
    // Neither is the reference held, nor are its jobs put aside.
    const rows = [...changes].flatMap(([key, value]): [string, string | undefined][] => {
      if (key.startsWith('erasurepaused:') && value?.startsWith('paused')) return [];
      const [position = '', born] = value?.split(' ') ?? [];
      const isAside = key.startsWith('erasureaside:') && born !== undefined;
      return [isAside ? [key.replace('erasureaside:', `erasuredue:${position}:`), born] : [key, value]];
    });
    const parts = written(changes, 'erasurebatch').map(([key, batch]): Written => [
      key,
      { ...batch, complete: batch.complete === true || (batch.total ?? 0) > 0 },
    ]);
    return storage.commit(checks, withAll(new Map(rows), parts));
  },
  /** What may have been carried out is not told from what was never sent. */
  'claim-unnoted': (storage) => (checks, changes) => {
    const jobs = written(changes, 'erasurepending').map(([key, job]): Written => [
      key,
      { ...job, data: { ...job.data, unknown: false } },
    ]);
    return storage.commit(checks, withAll(changes, jobs));
  },
  /** Whether the counts of a list are still those that were read is not looked at. */
  'check-left-out': (storage) => (checks, changes) => {
    const left = [...checks].filter(([key]) => !key.startsWith('erasurebatch:'));
    return storage.commit(new Map(left), changes);
  },
  /** What is requested in a transaction of the host's is not part of it. */
  'transaction-ignored': (storage) => ({
    within: () => storage,
  }),
};

/** Of the scenario, when it is to find one of these. */
const size = { kills: 8, erasures: 600 };

export const erasureFaults: readonly InjectedFault[] = [
  { name: 'finish-forgotten', under: 'erasures-lmdb-two', tell: /were repeated/, size },
  { name: 'begun-early', under: 'erasures-lmdb-two', tell: /before the list was read to its end/, size },
  { name: 'claim-unnoted', under: 'erasures-lmdb-two', tell: /called already gone/, size },
  { name: 'transaction-ignored', under: 'erasures-transaction', tell: /was rolled back/, size },
  { name: 'check-left-out', under: 'erasures-redis-two', tell: /it is running|of \d+ users/, size },
];

/** What these faults know of such a record. */
interface ErasureRecord {
  readonly complete?: boolean;
  readonly total?: number;
  readonly data?: object;
}

type Written = [key: string, record: ErasureRecord];

/** The erasures' records of one family that a commit writes. */
function written(changes: StorageValues, family: string): Written[] {
  return [...changes].flatMap(([key, value]): Written[] =>
    key.startsWith(`${family}:`) && value !== undefined ? [[key, JSON.parse(value) as ErasureRecord]] : [],
  );
}

function withAll(changes: StorageValues, others: readonly (readonly [string, unknown])[]): StorageValues {
  const texts = others.map(([key, value]) => [key, JSON.stringify(value)] as const);
  return new Map([...changes, ...texts]);
}
