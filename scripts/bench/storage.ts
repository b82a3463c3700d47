// npm run bench -- storage: what each engine takes for a stored logout beside a bare INSERT, for cycles of add, claim and
// finish, for a claim and the counts while many logouts wait and as many have ended, and for a step that prunes.
import { randomUUID } from 'node:crypto';
import { LogoutRepository } from '../../libs/debate-space/src/logout/logout-repository.js';
import { Keyring } from '../../libs/debate-space/src/secrets/keyring.js';
import { Secret } from '../../libs/debate-space/src/secrets/secret.js';
import type { EngineName } from '../test-crash/engines.js';
import {
  ask,
  inTurn,
  kill,
  line,
  openEngine,
  ratios,
  runProgram,
  start,
  storageKey,
  storagePlaces,
  type BenchOptions,
} from './measuring.js';

const WRITES = 300;
const AT_ONCE = [1, 16];
/** As the runner claims them. */
const BATCH = 32;
const CYCLES_MS = 1_000;
const PART = 500;

export async function storage({ pairs, rounds, pending, engines }: BenchOptions): Promise<void> {
  const places = await storagePlaces();
  for (const engine of engines) {
    console.log(`\n${engine}; ${pairs * rounds} rounds, in turn`);
    const { child } = await start('./storage.ts', ['storage', engine, places[engine]]);
    const timed =
      (...question: Question): (() => Promise<number>) =>
      async () =>
        (await ask(child, question)) as number;
    if (engine !== 'memory')
      for (const atOnce of AT_ONCE) {
        const writes = [timed('add', WRITES, atOnce), timed('bare', WRITES, atOnce)];
        const [adds = [], bare = []] = await inTurn(writes, pairs * rounds);
        line(`a stored logout ÷ a bare INSERT, ${atOnce} at a time`, ratios(adds, bare));
        line('  in milliseconds', adds);
      }
    const [cycles = []] = await inTurn([timed('cycle', CYCLES_MS, 16)], pairs * rounds);
    line('added, claimed and finished', cycles, ' logouts/s', 0);
    await timed('finish', pending / 2, PART)();
    await timed('fill', pending, PART)();
    for (const task of ['claim', 'counts', 'prune'] as const) {
      const [times = []] = await inTurn([timed(task, 1, 1)], 3 * pairs * rounds);
      line(`${task}, ${pending} waiting, ${pending / 2} finished`, times, ' ms');
    }
    await kill(child);
  }
}

type Task = (count: number, atOnce: number) => Promise<number>;
type Question = [task: keyof Awaited<ReturnType<typeof tasksOf>>, count: number, atOnce: number];

async function tasksOf(engine: EngineName, place: string) {
  const { storage: kind, query } = await openEngine(engine, place);
  const { storage } = await kind.open('bench');
  const logouts = new LogoutRepository(storage, new Keyring([new Secret(storageKey)], 'bench'), 0);
  await query('CREATE TABLE IF NOT EXISTS bare (name varchar(100) PRIMARY KEY, value text NOT NULL)', []);
  const newLogout = () => {
    const endedAt = Date.now();
    const id = `${String(endedAt).padStart(15, '0')}-${randomUUID()}`;
    return logouts.rowOf({ id, uid: `user-${randomUUID()}`, reason: 'destroyed', endedAt });
  };
  /** @returns milliseconds of each */
  const each = async (count: number, atOnce: number, work: () => unknown): Promise<number> => {
    const begun = performance.now();
    let left = count;
    const loop = async (): Promise<void> => {
      while (left-- > 0) await work();
    };
    await Promise.all(Array.from({ length: atOnce }, loop));
    return (performance.now() - begun) / count;
  };
  const add = () => storage.addLogouts([newLogout()]);
  const finish = async (limit: number): Promise<number> => {
    const { claims } = await storage.claim('logout', limit);
    await Promise.all(claims.map((claim) => storage.finishLogout(claim, 1)));
    return claims.length;
  };
  const fill = (count: number) =>
    each(count / PART, 1, () => storage.addLogouts(Array.from({ length: PART }, newLogout)));
  return {
    add: (count, atOnce) => each(count, atOnce, add),
    bare: (count, atOnce) =>
      each(count, atOnce, () => query('INSERT INTO bare VALUES (?, ?)', [randomUUID(), 'x'.repeat(400)])),
    /** @returns how many a second */
    cycle: async (ms, atOnce) => {
      const end = performance.now() + ms;
      let finished = 0;
      const finishing = async (): Promise<void> => {
        while (performance.now() < end) finished += await finish(BATCH);
      };
      const adding = Array.from({ length: atOnce }, async () => {
        while (performance.now() < end) await add();
      });
      await Promise.all([finishing(), ...adding]);
      while ((await finish(PART)) > 0);
      return (1000 * finished) / ms;
    },
    fill,
    finish: async (count) => {
      await fill(count);
      while ((await finish(PART)) > 0);
      return 0;
    },
    claim: async () => {
      const begun = performance.now();
      const { claims } = await storage.claim('logout', BATCH);
      const ms = performance.now() - begun;
      await storage.giveBack(claims);
      return ms;
    },
    counts: () => each(1, 1, () => storage.counts('logout')),
    prune: () => each(1, 1, () => storage.prune({ historyMs: 0, receiptsMs: 0 })),
  } satisfies Readonly<Record<string, Task>>;
}

await runProgram({
  storage: async (engine = '', place = '') => {
    const tasks = await tasksOf(engine as EngineName, place);
    process.on('message', ([task, count, atOnce]: Question) => {
      const work: Task = tasks[task];
      void work(count, atOnce).then((value) => process.send?.(value));
    });
    process.send?.({});
  },
});
