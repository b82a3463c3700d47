// A process with a storage, for the benchmark: does what its parent asks. Nobody delivers.
import { randomUUID } from 'node:crypto';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { erasureId, type ReferenceStatus } from '../../libs/debate-space/src/storage/storage.js';
import type { EngineName } from '../test-crash/engines.js';
import { openEngine } from './engines.js';
import { median } from './measuring.js';
import { fill, logoutsOf } from './new-logout.js';

/** As the runner claims them, and works on them. */
const BATCH = 32;
const AT_ONCE = 16;
const PART = 500;
const reference = 'list';

const [engine = '', place = '', application = ''] = process.argv.slice(2);
const { storage: kind, bareWrite } = await openEngine(engine as EngineName, place);
const { storage } = await kind.open(application);
const newLogout = logoutsOf(storage, application, 'a key that protects nothing');
const insert = await bareWrite();
const writes = {
  bare: (): unknown => insert(randomUUID()),
  add: (): unknown => storage.addLogouts([newLogout()]),
};

async function known(): Promise<ReferenceStatus> {
  const found = await storage.reference(reference);
  if (!found) throw new Error('the list is not stored');
  return found;
}
const setPaused = async (paused: boolean): Promise<boolean> =>
  storage.setPaused(await known(), paused, paused ? 'paused' : 'new');

interface Writes {
  readonly what: keyof typeof writes;
  readonly count: number;
}

async function msOf(work: () => unknown): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** Works so many times, some at a time. */
async function repeat(count: number, atOnce: number, work: () => unknown): Promise<void> {
  let left = count;
  const loop = async (): Promise<void> => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
}

async function finishBatch(): Promise<string[]> {
  const { claims } = await storage.claim('logout', BATCH);
  const left = [...claims];
  await repeat(claims.length, AT_ONCE, () => {
    const claim = left.pop();
    return claim && storage.finishLogout(claim, 1);
  });
  return claims.map(({ id }) => id);
}

const tasks = {
  /** @returns milliseconds of each write */
  write: async ({ what, count, atOnce }: Writes & { atOnce: number }) =>
    (await msOf(() => repeat(count, atOnce, writes[what]))) / count,

  /** One write every so often. @returns the milliseconds of each */
  timed: ({ what, count, everyMs }: Writes & { everyMs: number }) => {
    const begun = performance.now();
    const times = Array.from({ length: count }, async (_, n) => {
      await sleep(begun + n * everyMs - performance.now());
      return msOf(writes[what]);
    });
    return Promise.all(times);
  },

  fill: async ({ count }: { count: number }) => {
    await fill(storage, newLogout, count);
    return {};
  },

  /** @returns how long it took to claim a batch, which is then given back */
  claim: async () => {
    const begun = performance.now();
    const { claims } = await storage.claim('logout', BATCH);
    const ms = performance.now() - begun;
    await storage.giveBack(claims);
    return ms;
  },

  /** Adds, claims and finishes at the same time for a while. Afterwards, as many logouts wait as before. */
  cycle: async ({ ms }: { ms: number }) => {
    const end = performance.now() + ms;
    const ids: string[] = [];
    let added = 0;
    const adding = async (): Promise<void> => {
      while (performance.now() < end) {
        await repeat(AT_ONCE, AT_ONCE, writes.add);
        added += AT_ONCE;
      }
    };
    const finishing = async (): Promise<void> => {
      while (performance.now() < end) ids.push(...(await finishBatch()));
    };
    await Promise.all([adding(), finishing()]);
    const rate = (1000 * ids.length) / ms;
    for (let some = ids; ids.length < added && some.length > 0; ids.push(...some)) some = await finishBatch();
    await fill(storage, newLogout, ids.length - added);
    return { rate, ids };
  },

  /** @returns users a second, and milliseconds of each operation on the list */
  list: async ({ count }: { count: number }) => {
    const begun = performance.now();
    for (let from = 0; from < count; from += PART) {
      const users = Array.from({ length: Math.min(PART, count - from) }, () => {
        const { subject, sealed } = newLogout();
        return { id: erasureId(reference, subject), subject, sealed, formerIds: [] };
      });
      const list = { reader: 'bench', isFirst: from === 0, isLast: from + PART >= count };
      const request = { reference, mode: 'delete', requestedBy: undefined, requestedAt: Date.now() } as const;
      const known = await storage.reference(reference);
      await storage.addErasures({ ...request, list, known, mark: 'new' }, users);
    }
    const perSecond = (1000 * count) / (performance.now() - begun);
    const times = { progress: [] as number[], pause: [] as number[], resume: [] as number[] };
    for (let n = 0; n < 10; n += 1) {
      times.progress.push(await msOf(() => storage.reference(reference)));
      times.pause.push(await msOf(() => setPaused(true)));
      times.resume.push(await msOf(() => setPaused(false)));
    }
    const [progress, pause, resume] = Object.values(times).map(median);
    return { perSecond, progress, pause, resume };
  },

  /** Cancels the list in steps, and adds logouts beside them. */
  cancel: async () => {
    const [steps, adds] = [[] as number[], [] as number[]];
    const end = new AbortController();
    const adding = async (): Promise<void> => {
      while (!end.signal.aborted) {
        adds.push(await msOf(writes.add));
        await sleep(5);
      }
    };
    const isAdding = adding();
    const step = async (): Promise<boolean> => {
      const begun = performance.now();
      const { more } = await storage.cancelErasures(await known(), 'canceled');
      steps.push(performance.now() - begun);
      return more;
    };
    while (await step());
    end.abort();
    await isAdding;
    return { steps: steps.length, stepMs: Math.max(...steps), addMs: Math.max(...adds) };
  },

  /** Adds, claims and finishes so many logouts a second. @returns p99 of the delay of the event loop, in milliseconds */
  loop: async ({ perSecond, ms }: { perSecond: number; ms: number }) => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    const begun = performance.now();
    const adds: unknown[] = [];
    delay.enable();
    for (let n = 0; n < (perSecond * ms) / 1000; n += 1) {
      await sleep(begun + (n * 1000) / perSecond - performance.now());
      adds.push(writes.add());
      if (n % BATCH === 0) adds.push(finishBatch());
    }
    delay.disable();
    await Promise.all(adds);
    while ((await finishBatch()).length > 0);
    return delay.percentile(99) / 1e6;
  },
};

export type Tasks = typeof tasks;
export type Question = {
  [Name in keyof Tasks]: { task: Name; argument: Parameters<Tasks[Name]>[0] };
}[keyof Tasks];

process.on('message', ({ task, argument }: Question) => {
  void (tasks[task] as (argument: unknown) => Promise<unknown>)(argument).then((answer) =>
    process.send?.(answer),
  );
});
process.once('disconnect', () => process.exit());
process.send?.({});
