// npm run bench -- session: what the plugin costs requests that end nothing, and what it adds to a logout. Ratios of
// interleaved runs: fresh process pairs, short rounds that alternate between the two, so that what else the machine
// does meets both; a pair of equals beside them tells how much that is.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';

const { values, positionals } = parseArgs({
  options: { pairs: { type: 'string', default: '4' }, rounds: { type: 'string', default: '6' } },
  allowPositionals: true,
});
const [suite = 'session'] = positionals;
if (suite !== 'session') throw new Error(`no benchmark is called ${suite}; there is: session`);
const PAIRS = Number(values.pairs);
const ROUNDS = Number(values.rounds);
const ROUND_SECONDS = 1; // autocannon's smallest unit
const CONNECTIONS = 8;
const LOGOUTS = 100;
const host = new URL('./bench/host.mjs', import.meta.url);

const platforms = [
  { platform: 'express', stack: 'Express, express-session, MemoryStore' },
  { platform: 'fastify', stack: 'Fastify, @fastify/session, its own store' },
];
const scenarios = [
  { name: 'GET a trivial route, anonymous', unit: 'requests/s', measure: (url) => rate(url) },
  {
    name: 'GET a trivial route, logged in',
    unit: 'requests/s',
    measure: async (url, state) => rate(url, (state.cookie ??= await logIn(url))),
  },
  { name: 'a logout', unit: 'µs', measure: (url) => logoutTime(url) },
];
const comparisons = [
  { name: 'with ÷ without', kinds: ['with', 'without'] },
  { name: 'without ÷ without (control)', kinds: ['without', 'without'] },
];

console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, NestJS`);
console.log(`${PAIRS} process pairs each, ${ROUNDS} rounds for each process of a pair, in turn`);
for (const { platform, stack } of platforms) {
  console.log(`\n${stack}`);
  for (const scenario of scenarios) await report(platform, scenario);
}

async function report(platform, { name, unit, measure }) {
  console.log(`  ${name}`);
  for (const { name: comparison, kinds } of comparisons) {
    const [ratios, values] = [[], [[], []]];
    for (let pair = 0; pair < PAIRS; pair += 1) {
      const measured = await comparePair(platform, kinds, measure, pair % 2 === 1);
      ratios.push(measured[0] / measured[1]);
      for (const [index, value] of measured.entries()) values[index].push(value);
    }
    const sorted = ratios.toSorted((one, other) => one - other);
    const [low, middle, high] = [sorted[0], median(sorted), sorted.at(-1)].map((ratio) => ratio.toFixed(3));
    const medians = values.map((each) => Math.round(median(each))).join(' and ');
    console.log(`    ${comparison.padEnd(28)} ${middle}   (${low} to ${high})   ${medians} ${unit}`);
  }
}

/** What is measured at either process: the median over its rounds. */
async function comparePair(platform, kinds, measure, turned) {
  const processes = await Promise.all(kinds.map((kind) => start(kind, platform)));
  const states = processes.map(() => ({}));
  const measured = processes.map(() => []);
  for (let round = -1; round < ROUNDS; round += 1) {
    const order = (round % 2 === 0) === turned ? [0, 1] : [1, 0];
    for (const index of order) {
      const value = await measure(processes[index].url, states[index]);
      if (round >= 0) measured[index].push(value); // the one before is for warming up
    }
  }
  for (const { child } of processes) child.kill();
  return measured.map(median);
}

async function start(kind, platform) {
  const child = fork(host, [kind, platform]);
  const [{ url }] = await once(child, 'message');
  return { child, url };
}

async function rate(url, cookie) {
  const headers = cookie === undefined ? {} : { cookie };
  const load = { url: `${url}/hello`, headers, connections: CONNECTIONS, duration: ROUND_SECONDS };
  const result = await autocannon(load);
  const failed = result.non2xx + result.errors;
  if (failed > 0) throw new Error(`${failed} requests to ${url} failed`);
  return result.requests.total / ((result.finish - result.start) / 1000);
}

/** How long a logout takes, from the request to the end of the answer, one after another. */
async function logoutTime(url) {
  const times = [];
  for (let count = 0; count < LOGOUTS; count += 1) {
    const cookie = await logIn(url);
    const begun = performance.now();
    const response = await fetch(`${url}/logout`, { method: 'POST', headers: { cookie } });
    await response.text();
    times.push((performance.now() - begun) * 1000);
  }
  return median(times);
}

async function logIn(url) {
  const response = await fetch(`${url}/login`, { method: 'POST' });
  await response.text();
  return response.headers.getSetCookie()[0]?.split(';')[0];
}

function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle - 1)] + sorted[Math.floor(middle)]) / 2;
}
