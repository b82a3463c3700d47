// npm run bench -- session: the CPU time that the plugin costs a request that ends nothing. Three apps in one process – two
// processes differ by more than what is measured –, asked in small batches, in an order that changes. `--guard` fails where
// it costs more than `most` of the scenario in each of three processes.
import { Pool } from 'undici';
import type { BenchOptions } from './bench-options.js';
import type { Platform } from './host.js';
import { median, spread } from './measuring.js';
import { ask, kill, start } from './processes.js';

const BATCH = 160;
const WARM_UP = 6_000;
const ROUNDS = 250;
const GUARD_ROUNDS = 100;
/** A busy machine may spoil a process; of what is too slow, none is fast. */
const GUARD_TRIES = 3;
const CONNECTIONS = 8;

interface Scenario {
  readonly platform: Platform;
  readonly isLoggedIn: boolean;
  /** With the plugin ÷ without it, at most. */
  readonly most: number;
}

const scenarios: readonly Scenario[] = [
  { platform: 'express', isLoggedIn: false, most: 1.06 },
  { platform: 'express', isLoggedIn: true, most: 1.12 },
  { platform: 'fastify', isLoggedIn: false, most: 1.08 },
  { platform: 'fastify', isLoggedIn: true, most: 1.2 },
];

/** One of the three apps, and the CPU time of a request in each batch, in µs. */
interface Subject {
  readonly pool: Pool;
  readonly cookie: string | undefined;
  readonly costs: number[];
}

/** With the plugin, or without it once more, against without it. */
interface Cost {
  readonly ratio: number;
  readonly addedUs: number;
}

interface Measured {
  readonly control: Cost;
  readonly plugin: Cost;
}

export default async function session({ pairs, guard }: BenchOptions): Promise<void> {
  const processes = guard ? GUARD_TRIES : pairs;
  const rounds = guard ? GUARD_ROUNDS : ROUNDS;
  console.log(
    `CPU time of a request, with the plugin against without; ${rounds} rounds of ${BATCH} in a process`,
  );
  for (const scenario of scenarios) {
    const measured: Measured[] = [];
    const isGood = ({ control, plugin }: Measured): boolean => plugin.ratio / control.ratio <= scenario.most;
    while (measured.length < processes && !(guard && measured.some(isGood)))
      measured.push(await measure(scenario, rounds));
    const name = `${scenario.platform}, ${scenario.isLoggedIn ? 'logged in' : 'anonymous'}`;
    for (const of of ['control', 'plugin'] as const) {
      const ratios = spread(measured.map((each) => each[of].ratio));
      const added = spread(
        measured.map((each) => each[of].addedUs),
        1,
      );
      console.log(`  ${name.padEnd(20)} ${of}  × ${ratios}   ${added} µs more`);
    }
    if (guard && !measured.some(isGood))
      throw new Error(`${name}: the plugin costs more than × ${scenario.most}`);
  }
  process.exit();
}

/** Of one process. */
async function measure({ platform, isLoggedIn }: Scenario, rounds: number): Promise<Measured> {
  const { child, urls } = await start('./host.ts', [platform]);
  const subjects: Subject[] = [];
  for (const url of urls) {
    const pool = new Pool(url, { connections: CONNECTIONS });
    subjects.push({ pool, cookie: isLoggedIn ? await logIn(url) : undefined, costs: [] });
  }
  for (const subject of subjects) await load(subject, WARM_UP); // the rounds measure what is compiled
  const cpu = async (): Promise<number> => (await ask(child, 'cpu')) as number;
  for (let round = 0; round < rounds; round += 1)
    for (let n = 0; n < subjects.length; n += 1) {
      const subject = subjects[(n * (round % 2 === 0 ? 1 : 2) + round) % subjects.length];
      if (!subject) continue;
      const before = await cpu();
      await load(subject, BATCH);
      subject.costs.push(((await cpu()) - before) / BATCH);
    }
  for (const { pool } of subjects) await pool.close();
  await kill(child);
  const [plain, control, plugin] = subjects.map(({ costs }) => costs);
  const against = (costs: readonly number[] = []): Cost => ({
    ratio: median(costs.map((cost, round) => cost / (plain?.[round] ?? NaN))),
    addedUs: median(costs.map((cost, round) => cost - (plain?.[round] ?? NaN))),
  });
  return { control: against(control), plugin: against(plugin) };
}

async function load({ pool, cookie }: Subject, amount: number): Promise<void> {
  const headers = cookie === undefined ? {} : { cookie };
  let left = amount;
  const browser = async (): Promise<void> => {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({ path: '/hello', method: 'GET', headers });
      await body.dump();
      if (statusCode !== 200) throw new Error(`the host answered with ${statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, browser));
}

async function logIn(url: string): Promise<string | undefined> {
  const response = await fetch(`${url}/login`, { method: 'POST' });
  await response.text();
  return response.headers.getSetCookie()[0]?.split(';')[0];
}
