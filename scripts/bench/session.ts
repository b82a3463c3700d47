// npm run bench -- session: what the plugin costs requests that end nothing, in CPU time of the host's process and in
// requests/s. A second process without the plugin, the control, tells how much is the machine's. `--profile` prints the
// share of the plugin's own frames, `--guard` fails when it is too large.
import type { ChildProcess } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { Pool } from 'undici';
import type { BenchOptions } from './bench-options.js';
import type { Platform } from './host.js';
import { inTurn, median, spread } from './measuring.js';
import type { OwnShare } from './own-frames.js';
import { ask, kill, start, type Started } from './outbox-places.js';

const REQUESTS = 5_000; // of a round
const WARM_UP = 20_000;
const CONNECTIONS = 8;
const MAX_OWN_PERCENT = 4;
/** One process and another differ by half a percent, as they are compiled: the median of so many counts. */
const GUARDED_PROCESSES = 5;

const platforms: readonly { readonly platform: Platform; readonly stack: string }[] = [
  { platform: 'express', stack: 'Express, express-session, MemoryStore' },
  { platform: 'fastify', stack: 'Fastify, @fastify/session, its own store' },
];
const scenarios: readonly Scenario[] = [
  { name: 'anonymous', cookieFor: () => Promise.resolve(undefined) },
  { name: 'logged in', cookieFor: logIn },
];
const KINDS = ['with', 'without', 'without'];

interface Scenario {
  readonly name: string;
  /** Of a browser. */
  readonly cookieFor: (url: string) => Promise<string | undefined>;
}

/** Of a process, the medians of its rounds. */
interface Cost {
  /** Requests a second. */
  readonly rate: number;
  /** In µs of one request. */
  readonly cpu: number;
}

/** Of the processes, in the order of `KINDS`. */
type Pass = readonly [plugin: Cost, none: Cost, control: Cost];

export default async function session(options: BenchOptions): Promise<void> {
  const { pairs, rounds, profile, guard } = options;
  if (!profile && !guard)
    console.log(`${pairs} times fresh processes, ${rounds} rounds of ${REQUESTS} requests each, in turn`);
  for (const { platform, stack } of platforms) {
    console.log(`\n${stack}`);
    for (const scenario of scenarios) {
      if (profile || guard) await reportProfile(platform, scenario, guard);
      else await report(platform, scenario, options);
    }
  }
  process.exit();
}

async function report(
  platform: Platform,
  { name, cookieFor }: Scenario,
  { pairs, rounds }: BenchOptions,
): Promise<void> {
  const passes: Pass[] = [];
  for (let pass = 0; pass < pairs; pass += 1) {
    const hosts = await Promise.all(KINDS.map((kind) => start('./host.ts', [kind, platform])));
    passes.push(await onePass(hosts, cookieFor, rounds, pass % 2 === 1));
    for (const { child } of hosts) await kill(child);
  }
  const lines: readonly (readonly [
    text: string,
    value: (one: Cost, none: Cost) => number,
    digits: number,
  ])[] = [
    ['requests/s ÷ without', (one, none) => one.rate / none.rate, 3],
    ['CPU µs a request, more than without', (one, none) => one.cpu - none.cpu, 2],
  ];
  console.log(`  GET a trivial route, ${name}`);
  for (const [text, value, digits] of lines) {
    const of = (index: 0 | 2): string =>
      spread(
        passes.map((pass) => value(pass[index], pass[1])),
        digits,
      );
    console.log(`    ${text.padEnd(36)} ${of(0)}   control ${of(2)}`);
  }
  const middle = (index: 0 | 1, key: keyof Cost): number => median(passes.map((pass) => pass[index][key]));
  console.log(`    CPU µs a request: ${middle(0, 'cpu').toFixed(1)}, without ${middle(1, 'cpu').toFixed(1)}`);
  console.log(`    requests/s: ${Math.round(middle(0, 'rate'))}, without ${Math.round(middle(1, 'rate'))}`);
}

async function onePass(
  hosts: readonly Started[],
  cookieFor: Scenario['cookieFor'],
  rounds: number,
  turned: boolean,
): Promise<Pass> {
  const cpus: number[][] = [];
  const subjects: (() => Promise<number>)[] = [];
  for (const { url, child } of hosts) {
    const spent: number[] = [];
    const cookie = await cookieFor(url);
    await load(url, cookie, WARM_UP); // the rounds measure what is compiled
    cpus.push(spent);
    subjects.push(async () => {
      const before = await cpuOf(child);
      const rate = await load(url, cookie);
      spent.push(((await cpuOf(child)) - before) / REQUESTS);
      return rate;
    });
  }
  const rates = await inTurn(subjects, rounds, turned);
  const costOf = (index: number): Cost => ({
    rate: rates[index] ?? NaN,
    cpu: median(cpus[index]?.slice(1) ?? []), // the first round is for warming up
  });
  return [costOf(0), costOf(1), costOf(2)];
}

async function reportProfile(
  platform: Platform,
  { name, cookieFor }: Scenario,
  guard: boolean,
): Promise<void> {
  const shares: number[] = [];
  for (let n = 0; n < (guard ? GUARDED_PROCESSES : 1); n += 1) {
    const { child, url } = await start('./host.ts', ['with', platform]);
    const cookie = await cookieFor(url);
    await load(url, cookie, WARM_UP);
    const before = await cpuOf(child);
    await ask(child, 'profile');
    const requests = 6 * REQUESTS;
    await load(url, cookie, requests);
    const { own, ownAndCalled, samples, functions } = (await ask(child, 'profiled')) as OwnShare;
    const cpu = ((await cpuOf(child)) - before) / requests;
    await kill(child);
    shares.push(own);
    console.log(
      `  ${name}: own frames ${own.toFixed(2)} % of ${samples} samples, about ${((cpu * own) / 100).toFixed(2)} µs a request; ` +
        `with what they call of Node.js ${ownAndCalled.toFixed(2)} %`,
    );
    if (!guard)
      for (const [its, share] of functions) console.log(`    ${share.toFixed(2).padStart(5)} %  ${its}`);
  }
  if (guard && median(shares) >= MAX_OWN_PERCENT) {
    console.error(
      `hint: \`npm run bench -- session --profile\` shows what takes ${MAX_OWN_PERCENT} % of a request or more`,
    );
    process.exit(1);
  }
}

/** In µs, since the process began. */
async function cpuOf(child: ChildProcess): Promise<number> {
  return (await ask(child, 'cpu')) as number;
}

/** @returns requests/s */
async function load(url: string, cookie: string | undefined, amount = REQUESTS): Promise<number> {
  const pool = new Pool(url, { connections: CONNECTIONS });
  const headers = cookie === undefined ? {} : { cookie };
  let left = amount;
  const browser = async (): Promise<void> => {
    while (left-- > 0) {
      const { statusCode, body } = await pool.request({ path: '/hello', method: 'GET', headers });
      await body.dump();
      if (statusCode !== 200) throw new Error(`${url} answered with ${statusCode}`);
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: CONNECTIONS }, browser));
  const rate = amount / ((performance.now() - begun) / 1000);
  await pool.close();
  return rate;
}

async function logIn(url: string): Promise<string | undefined> {
  const response = await fetch(`${url}/login`, { method: 'POST' });
  await response.text();
  return response.headers.getSetCookie()[0]?.split(';')[0];
}
