// Faults of the kind that this test is to find, put between the plugin and its storage inside an app process.
import { setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import { ERASURE_PLANTS, plantedErasures } from './planted-erasures.mjs';

const LATE_MS = 50;
/** How long a claim takes, so that a kill meets it. */
const CLAIM_MS = 100;
const KILLED_OFTEN = { kills: 24, endings: 900 };

const LOGOUT_PLANTS = {
  /** The session ends first, and the storage hears of it afterwards. */
  'end-first': (storage) => {
    const unwritten = new Map();
    return (checks, changes) => {
      const held = heldIn(checks);
      if (held !== undefined && checks.get(held) === undefined) {
        unwritten.set(held, [checks, changes]);
        return true;
      }
      const hold = unwritten.get(held);
      if (!hold) return storage.commit(checks, changes);
      unwritten.delete(held);
      if (isRelease(checks, changes))
        setTimeout(async () => {
          await storage.commit(...hold);
          await storage.commit(checks, changes);
        }, LATE_MS);
      return true;
    };
  },
  /** It says that it has an entry, and writes it a moment later. */
  'written-late': (storage) => (checks, changes) => {
    if (heldIn(checks) === undefined) return storage.commit(checks, changes);
    setTimeout(() => storage.commit(checks, changes), LATE_MS);
    return true;
  },
  /** The end is proven, and the storage does not hear of it: it waits for the lease of a process that lives. */
  'release-undone': (storage) => (checks, changes) =>
    isRelease(checks, changes) || storage.commit(checks, changes),
  /** What is taken out for delivery is gone, whether it arrives or not. */
  'claim-by-deletion': (storage) => (checks, changes) => {
    const records = claimedIn(checks).map(({ record }) => [record, undefined]);
    return storage.commit(checks, new Map([...changes, ...records]));
  },
  /** What a process died over is not given out again. */
  'stalled-once': (storage) => async (checks, changes) => {
    const claimed = claimedIn(checks);
    if (claimed.length === 0) return storage.commit(checks, changes);
    const texts = await storage.get(claimed.map(({ record }) => record));
    const stalled = claimed.filter(({ dueAt }, n) => texts[n] && JSON.parse(texts[n]).dueAt !== dueAt);
    if (stalled.length > 0) {
      const gone = stalled.flatMap(({ due, record }) => [[due, undefined], [record, undefined]]); // prettier-ignore
      await storage.commit(new Map(), new Map(gone));
      return false;
    }
    const isMade = await storage.commit(checks, changes);
    await sleep(CLAIM_MS);
    return isMade;
  },
  /** A claim does not look whether another process was faster. */
  'claim-unchecked': (storage) => (checks, changes) =>
    storage.commit(claimedIn(checks).length > 0 ? new Map() : checks, changes),
};

const PLANTS = { ...LOGOUT_PLANTS, ...ERASURE_PLANTS };

const plantedLogouts = [
  { name: 'end-first', under: 'lmdb', tell: /are gone/ },
  { name: 'written-late', under: 'lmdb', tell: /are gone/ },
  { name: 'release-undone', under: 'memory-unharmed', tell: /still wait/ },
  { name: 'claim-by-deletion', under: 'lmdb', size: KILLED_OFTEN, tell: /are gone/ },
  { name: 'stalled-once', under: 'redis-two', size: KILLED_OFTEN, tell: /are gone/ },
  { name: 'claim-unchecked', under: 'lmdb-two', size: { kills: 4, endings: 900 }, tell: /arrived again/ },
];

/** Each with the scenario that is to find it, and with what it is to be told by. */
export const planted = [...plantedLogouts, ...plantedErasures];

/** A storage engine with one of these faults; as it is, when none is named. */
export function plant(name, engine) {
  if (name === undefined) return engine;
  const open = async (context) => {
    const storage = await engine.open(context);
    const commit = PLANTS[name](storage);
    return new Proxy(storage, {
      get: (target, key) => {
        if (key === 'commit') return commit;
        const own = Reflect.get(target, key, target);
        return typeof own === 'function' ? own.bind(target) : own;
      },
    });
  };
  return { ...engine, open };
}

/** The record that a hold, a release or a cancellation is about. */
function heldIn(checks) {
  return [...checks.keys()].find((key) => key.startsWith('held:'));
}

function isRelease(checks, changes) {
  const text = checks.get(heldIn(checks));
  const pending = [...changes].find(([key]) => key.startsWith('pending:'));
  // A claim of what a process died over leaves the record as it is.
  return text !== undefined && pending !== undefined && pending[1] !== text;
}

/** What a commit claims: a claim is the only one that checks nothing but when logouts are due. */
function claimedIn(checks) {
  const keys = [...checks.keys()];
  if (!keys.every((key) => /^due:\d/.test(key))) return [];
  return keys.map((due) => {
    const [, micros, id] = due.split(':');
    return { due, record: `pending:${id}`, dueAt: Math.floor(Number(micros) / 1000) };
  });
}
