// npm run bench -- session: the CPU time that the plugin costs a request that ends nothing. Three apps in one process – two
// processes differ by more than what is measured –, asked in small batches, in an order that changes. `--guard` fails where
// it costs more than `MOST`.
import { Pool } from 'undici';
import type { BenchOptions } from './bench-options.js';
import type { Platform } from './host.js';
import { median, spread } from './measuring.js';
import { ask, kill, start } from './outbox-places.js';

const BATCH = 160;
const WARM_UP = 6_000;
const ROUNDS = 250;
const GUARD_ROUNDS = 150;
const CONNECTIONS = 8;

interface Scenario {
  readonly platform: Platform;
  readonly isLoggedIn: boolean;
  /** With the plugin ÷ without it, at most. */
  readonly most: number;
}

const scenarios: readonly Scenario[] = [
  { platform: 'express', isLoggedIn: false, most: 1.04 },
  { platform: 'express', isLoggedIn: true, most: 1.1 },
  { platform: 'fastify', isLoggedIn: false, most: 1.06 },
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

export default async function session({ pairs, guard }: BenchOptions): Promise<void> {
  const processes = guard ? 1 : pairs;
  const rounds = guard ? GUARD_ROUNDS : ROUNDS;
  console.log(
    `CPU time of a request, with the plugin against without; ${processes} × ${rounds} rounds of ${BATCH}`,
  );
  for (const scenario of scenarios) {
    const measured: (readonly [control: Cost, plugin: Cost])[] = [];
    for (let n = 0; n < processes; n += 1) measured.push(await measure(scenario, rounds));
    const name = `${scenario.platform}, ${scenario.isLoggedIn ? 'logged in' : 'anonymous'}`;
    for (const [index, of] of ['control', 'plugin'].entries()) {
      const costs = measured.map((each) => each[index === 0 ? 0 : 1]);
      const [ratios, added] = [costs.map(({ ratio }) => ratio), costs.map(({ addedUs }) => addedUs)];
      console.log(`  ${name.padEnd(20)} ${of}  × ${spread(ratios)}   ${spread(added, 1)} µs more`);
    }
    const most = Math.min(...measured.map(([control, plugin]) => plugin.ratio / control.ratio));
    if (guard && most > scenario.most)
      throw new Error(`${name}: the plugin costs more than × ${scenario.most}`);
  }
  process.exit();
}

/** Of one process. */
async function measure({ platform, isLoggedIn }: Scenario, rounds: number): Promise<readonly [Cost, Cost]> {
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
  return [against(control), against(plugin)];
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
