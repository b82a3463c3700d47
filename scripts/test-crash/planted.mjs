// Faults of the kind that this test is to find, put between the plugin and its engine inside an app process.
import { setTimeout } from 'node:timers';
import { ERASURE_PLANTS, plantedErasures } from './planted-erasures.mjs';
import { workerOfDefaults } from './planted-worker.mjs';

const LATE_MS = 50;

const LOGOUT_PLANTS = {
  /** The session ends first, and the outbox hears of it afterwards. */
  'end-first': (engine) => {
    const unwritten = new Map();
    return {
      hold: (entry, leaseMs) => void unwritten.set(entry.id, [entry, leaseMs]),
      cancel: (id) => void unwritten.delete(id),
      release: (id) => {
        const hold = unwritten.get(id);
        unwritten.delete(id);
        setTimeout(async () => {
          await engine.hold(...hold);
          await engine.release(id);
        }, LATE_MS);
      },
    };
  },
  /** What is taken out for delivery is gone, whether it arrives or not. */
  'claim-by-deletion': (engine) => ({
    claim: async (limit, leaseMs) => {
      const jobs = await engine.claim(limit, leaseMs);
      await Promise.all(jobs.map(({ entry }) => engine.finish(entry.id, 1)));
      return jobs;
    },
  }),
  /** It says that it has an entry, and writes it a moment later. */
  'written-late': (engine) => {
    const written = new Map();
    const after = (id, change) => written.get(id)?.then(change) ?? change();
    return {
      hold: (entry, leaseMs) => {
        const late = new Promise((resolve) => setTimeout(resolve, LATE_MS));
        written.set(
          entry.id,
          late.then(() => engine.hold(entry, leaseMs)),
        );
      },
      release: (id) => void after(id, () => engine.release(id)),
      cancel: (id) => void after(id, () => engine.cancel(id)),
    };
  },
  'stalled-once': workerOfDefaults,
};

const PLANTS = { ...LOGOUT_PLANTS, ...ERASURE_PLANTS };

/** One job must be met twice by a kill: that takes more of them. */
const plantedLogouts = Object.keys(LOGOUT_PLANTS).map((name) => {
  const tell = /are gone|still wait/;
  if (name !== 'stalled-once') return { name, under: 'lmdb', tell };
  return { name, under: 'bullmq-two', size: { kills: 24, endings: 900 }, tell };
});

/** Each with the scenario that is to find it, and with what it is to be told by. */
export const planted = [...plantedLogouts, ...plantedErasures];

/** An outbox factory with one of these faults; as it is, when none is named. */
export function plant(name, factory) {
  if (name === undefined) return factory;
  return {
    open: async (context) => {
      const engine = await factory.open(context);
      const faulty = PLANTS[name](engine, await import('bullmq'));
      return new Proxy(engine, {
        get: (target, key) => {
          if (key in faulty) return faulty[key];
          const own = Reflect.get(target, key, target);
          return typeof own === 'function' ? own.bind(target) : own;
        },
      });
    },
  };
}
