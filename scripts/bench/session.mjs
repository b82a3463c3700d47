// npm run bench -- session: what the plugin costs requests that end nothing, and what it adds to a logout. A pair of
// equals beside each comparison tells how much is the machine's.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import autocannon from 'autocannon';
import { inTurn, median, spread } from './measuring.mjs';

const ROUND_SECONDS = 1; // autocannon's smallest unit
const CONNECTIONS = 8;
const LOGOUTS = 100;
const host = new URL('./host.mjs', import.meta.url);

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

export default async function session({ pairs, rounds }) {
  console.log(`${pairs} process pairs each, ${rounds} rounds for each process of a pair, in turn`);
  for (const { platform, stack } of platforms) {
    console.log(`\n${stack}`);
    for (const scenario of scenarios) await report(platform, scenario, pairs, rounds);
  }
}

async function report(platform, { name, unit, measure }, pairs, rounds) {
  console.log(`  ${name}`);
  for (const { name: comparison, kinds } of comparisons) {
    const [ratios, values] = [[], [[], []]];
    for (let pair = 0; pair < pairs; pair += 1) {
      const measured = await comparePair(platform, kinds, measure, rounds, pair % 2 === 1);
      ratios.push(measured[0] / measured[1]);
      for (const [index, value] of measured.entries()) values[index].push(value);
    }
    const medians = values.map((each) => Math.round(median(each))).join(' and ');
    console.log(`    ${comparison.padEnd(28)} ${spread(ratios)}   ${medians} ${unit}`);
  }
}

async function comparePair(platform, kinds, measure, rounds, turned) {
  const processes = await Promise.all(kinds.map((kind) => start(kind, platform)));
  const subjects = processes.map(({ url }) => {
    const state = {};
    return () => measure(url, state);
  });
  const measured = await inTurn(subjects, rounds, turned);
  for (const { child } of processes) child.kill();
  return measured;
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
