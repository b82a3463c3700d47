// npm run bench -- session: what the plugin costs requests that end nothing, in CPU time of the host's process and in
// requests/s. A second process without the plugin, the control, tells how much is the machine's. `--profile` prints the
// share of the plugin's own frames, `--guard` fails when it is too large.
import { performance } from 'node:perf_hooks';
import { Pool } from 'undici';
import { inTurn, median, spread } from './measuring.mjs';
import { ask, kill, start } from './outbox-places.mjs';

const REQUESTS = 5_000; // of a round
const WARM_UP = 20_000;
const CONNECTIONS = 8;
const MAX_OWN_PERCENT = 4;

const platforms = [
  { platform: 'express', stack: 'Express, express-session, MemoryStore' },
  { platform: 'fastify', stack: 'Fastify, @fastify/session, its own store' },
];
const scenarios = [
  { scenario: 'anonymous', cookieFor: async () => undefined },
  { scenario: 'logged in', cookieFor: logIn },
];
const KINDS = ['with', 'without', 'without'];

export default async function session(options) {
  const { pairs, rounds, profile, guard } = options;
  if (!profile && !guard)
    console.log(`${pairs} times fresh processes, ${rounds} rounds of ${REQUESTS} requests each, in turn`);
  for (const { platform, stack } of platforms) {
    console.log(`\n${stack}`);
    for (const { scenario, cookieFor } of scenarios) {
      if (profile || guard) await reportProfile(platform, scenario, cookieFor, guard);
      else await report(platform, scenario, cookieFor, options);
    }
  }
  process.exit();
}

async function report(platform, scenario, cookieFor, { pairs, rounds }) {
  const passes = [];
  for (let pass = 0; pass < pairs; pass += 1) {
    const hosts = await Promise.all(KINDS.map((kind) => start('./host.mjs', [kind, platform])));
    passes.push(await onePass(hosts, cookieFor, rounds, pass % 2 === 1));
    for (const { child } of hosts) await kill(child);
  }
  const lines = [
    ['requests/s ÷ without', (one, none) => one.rate / none.rate, 3],
    ['CPU µs a request, more than without', (one, none) => one.cpu - none.cpu, 2],
  ];
  console.log(`  GET a trivial route, ${scenario}`);
  for (const [text, value, digits] of lines) {
    const of = (index) =>
      spread(
        passes.map((pass) => value(pass[index], pass[1])),
        digits,
      );
    console.log(`    ${text.padEnd(36)} ${of(0)}   control ${of(2)}`);
  }
  const middle = (index, key) => median(passes.map((pass) => pass[index][key]));
  console.log(`    CPU µs a request: ${middle(0, 'cpu').toFixed(1)}, without ${middle(1, 'cpu').toFixed(1)}`);
  console.log(`    requests/s: ${Math.round(middle(0, 'rate'))}, without ${Math.round(middle(1, 'rate'))}`);
}

/** For each host: the medians of its rounds. */
async function onePass(hosts, cookieFor, rounds, turned) {
  const cpus = hosts.map(() => []);
  const subjects = [];
  for (const [index, { url, child }] of hosts.entries()) {
    const cookie = await cookieFor(url);
    await load(url, cookie, WARM_UP); // the rounds measure what is compiled
    subjects.push(async () => {
      const before = await ask(child, 'cpu');
      const rate = await load(url, cookie);
      cpus[index].push(((await ask(child, 'cpu')) - before) / REQUESTS);
      return rate;
    });
  }
  const rates = await inTurn(subjects, rounds, turned);
  return rates.map((rate, index) => ({ rate, cpu: median(cpus[index].slice(1)) })); // the first is for warming up
}

async function reportProfile(platform, scenario, cookieFor, guard) {
  const { child, url } = await start('./host.mjs', ['with', platform]);
  const cookie = await cookieFor(url);
  await load(url, cookie, guard ? REQUESTS : WARM_UP);
  const before = await ask(child, 'cpu');
  await ask(child, 'profile');
  const requests = (guard ? 2 : 5) * REQUESTS;
  await load(url, cookie, requests);
  const { own, ownAndCalled, samples, functions } = await ask(child, 'profiled');
  const cpu = ((await ask(child, 'cpu')) - before) / requests;
  await kill(child);
  console.log(
    `  ${scenario}: own frames ${own.toFixed(2)} % of ${samples} samples, about ${((cpu * own) / 100).toFixed(2)} µs a request; ` +
      `with what they call of Node.js ${ownAndCalled.toFixed(2)} %`,
  );
  if (!guard)
    for (const [name, share] of functions) console.log(`    ${share.toFixed(2).padStart(5)} %  ${name}`);
  if (guard && own >= MAX_OWN_PERCENT) {
    console.error(
      `hint: \`npm run bench -- session --profile\` shows what takes ${MAX_OWN_PERCENT} % of a request or more`,
    );
    process.exit(1);
  }
}

/** @returns requests/s */
async function load(url, cookie, amount = REQUESTS) {
  const pool = new Pool(url, { connections: CONNECTIONS });
  const headers = cookie === undefined ? {} : { cookie };
  let left = amount;
  const browser = async () => {
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

async function logIn(url) {
  const response = await fetch(`${url}/login`, { method: 'POST' });
  await response.text();
  return response.headers.getSetCookie()[0]?.split(';')[0];
}
