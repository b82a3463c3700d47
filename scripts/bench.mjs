// What requests that end nothing cost: requests per second with ÷ without the plugin, beside a control pair.
// Fresh process pairs, short rounds that alternate between the two, so that what else the machine does meets both.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';

const { values } = parseArgs({
  options: { pairs: { type: 'string', default: '6' }, rounds: { type: 'string', default: '8' } },
});
const PAIRS = Number(values.pairs);
const ROUNDS = Number(values.rounds);
const ROUND_SECONDS = 1; // autocannon's smallest unit
const CONNECTIONS = 8;
const host = new URL('./bench/host.mjs', import.meta.url);

const scenarios = [
  { name: 'anonymous', cookie: async () => undefined },
  { name: 'logged in', cookie: (url) => cookieOf(`${url}/login`) },
];
const comparisons = [
  { name: 'with ÷ without', kinds: ['with', 'without'] },
  { name: 'without ÷ without (control)', kinds: ['without', 'without'] },
];

console.log(
  `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}; NestJS on Express, express-session, MemoryStore`,
);
console.log(`${PAIRS} process pairs each, ${ROUNDS} rounds of ${ROUND_SECONDS} s for each process of a pair`);
for (const scenario of scenarios) {
  const ratios = comparisons.map(() => []);
  const rates = { with: [], without: [] };
  for (let pair = 0; pair < PAIRS; pair += 1) {
    for (const [index, { kinds }] of comparisons.entries()) {
      const [one, other] = await comparePair(kinds, scenario, pair % 2 === 1);
      ratios[index].push(one / other);
      rates[kinds[0]].push(one);
      rates[kinds[1]].push(other);
    }
  }
  console.log(`\nGET a trivial route, ${scenario.name}`);
  for (const [index, { name }] of comparisons.entries()) {
    const sorted = ratios[index].toSorted((one, other) => one - other);
    const [low, middle, high] = [sorted[0], median(sorted), sorted.at(-1)].map((ratio) => ratio.toFixed(3));
    console.log(`  ${name.padEnd(28)} ${middle}   (${low} to ${high})`);
  }
  for (const [kind, each] of Object.entries(rates))
    console.log(`  requests/s ${kind.padEnd(17)} ${Math.round(median(each))}`);
}

/** Requests per second of either process: the median over its rounds. */
async function comparePair(kinds, scenario, turned) {
  const processes = await Promise.all(kinds.map((kind) => start(kind)));
  const cookies = await Promise.all(processes.map(({ url }) => scenario.cookie(url)));
  const rates = processes.map(() => []);
  for (let round = -1; round < ROUNDS; round += 1) {
    const order = (round % 2 === 0) === turned ? [0, 1] : [1, 0];
    for (const index of order) {
      const rate = await load(`${processes[index].url}/hello`, cookies[index]);
      if (round >= 0) rates[index].push(rate); // the one before is for warming up
    }
  }
  for (const { child } of processes) child.kill();
  return rates.map(median);
}

async function start(kind) {
  const child = fork(host, [kind]);
  const [{ url }] = await once(child, 'message');
  return { child, url };
}

async function load(url, cookie) {
  const headers = cookie === undefined ? {} : { cookie };
  const result = await autocannon({ url, headers, connections: CONNECTIONS, duration: ROUND_SECONDS });
  const failed = result.non2xx + result.errors;
  if (failed > 0) throw new Error(`${failed} requests to ${url} failed`);
  return result.requests.total / ((result.finish - result.start) / 1000);
}

async function cookieOf(url) {
  const response = await fetch(url, { method: 'POST' });
  return response.headers.getSetCookie()[0]?.split(';')[0];
}

function median(values) {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle - 1)] + sorted[Math.floor(middle)]) / 2;
}
