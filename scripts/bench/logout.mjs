// npm run bench -- logout: what a logout's response waits for with each engine, beside no plugin, beside one bare durable
// write of that engine, and beside a handler that waits for the service; and what other routes notice of logouts.
import autocannon from 'autocannon';
import { logoutTimes, warmUp } from './logout-browsers.mjs';
import { inTurn, median, quantile, spread } from './measuring.mjs';
import { ask, kill, start, storagePlaces } from './outbox-places.mjs';

const EVERY_MS = 20;
const LOGOUTS = 10; // of a turn: the next process has its turn soon, so that what else the machine does meets all of them
const TURNS = 5; // of a round
const BESIDE = 50; // in about as long as autocannon's smallest unit, a second
const CONNECTIONS = 8;
// The first is what the others are compared with; the second is its equal, and how they differ is the machine's.
const kinds = ['no plugin', 'no plugin', 'memory', 'lmdb', 'redis', 'postgres', 'by hand'];
const DURABLE = ['lmdb', 'redis', 'postgres'];

export default async function logout({ pairs, rounds, engines }) {
  const { places, versions } = await storagePlaces();
  console.log(versions);
  const [service, slow] = [await start('./logout-service.mjs'), await start('./logout-slow-service.mjs')];
  const isUsed = (kind) => engines.includes(kind) && places[kind] !== undefined;
  const used = kinds.filter((kind) => ['no plugin', 'by hand'].includes(kind) || isUsed(kind));
  const durable = DURABLE.filter(isUsed);
  console.log(`${pairs} times fresh processes, ${rounds} rounds each, in turn; ${1000 / EVERY_MS} logouts/s`);
  const passes = [];
  for (let pass = 0; pass < pairs; pass += 1) {
    const url = (kind) => (kind === 'by hand' ? slow.url : service.url);
    const args = used.map((kind) => [kind, url(kind), `pass-${pass}`, places[kind] ?? '']);
    const hosts = await Promise.all(args.map((each) => start('./logout-host.mjs', each)));
    const bare = await Promise.all(
      durable.map((engine) => start('./logout-bare.mjs', [engine, places[engine]])),
    );
    passes.push(await onePass(hosts, bare, rounds, pass % 2 === 1));
    for (const { child } of [...hosts, ...bare]) await kill(child);
  }
  report(used, passes);
  reportBare(used, durable, passes);
  process.exit();
}

/** For each host, its logouts' p50 and p99 in ms and the requests/s of the other route; then p50 and p99 of bare writes. */
async function onePass(hosts, bare, rounds, turned) {
  for (const { url } of hosts) await warmUp(url);
  const times = [...hosts, ...bare].map(() => []);
  const timing = [...hosts, ...bare].map(({ url, child }, index) => async () => {
    const writes = { count: LOGOUTS, everyMs: EVERY_MS };
    times[index].push(url ? await logoutTimes(url, LOGOUTS, EVERY_MS) : await ask(child, writes));
    return 0;
  });
  await inTurn(timing, rounds * TURNS, turned);
  const rates = await inTurn(
    hosts.map(
      ({ url }) =>
        () =>
          rateBesideLogouts(url),
    ),
    rounds,
    turned,
  );
  return times.map((each, index) => {
    const all = each.slice(1).flat(); // the first round is for warming up
    return { p50: quantile(all, 0.5), p99: quantile(all, 0.99), rate: rates[index] };
  });
}

async function rateBesideLogouts(url) {
  const load = { url: `${url}/hello`, connections: CONNECTIONS, duration: 1 };
  const [result] = await Promise.all([autocannon(load), logoutTimes(url, BESIDE, EVERY_MS)]);
  const failed = result.non2xx + result.errors;
  if (failed > 0) throw new Error(`${failed} requests to ${url} failed`);
  return result.requests.total / ((result.finish - result.start) / 1000);
}

function report(used, passes) {
  const lines = (text, first, value) => {
    console.log(`\n${text}`);
    for (const [index, kind] of used.entries()) {
      if (index < first) continue;
      const title = index === 1 ? 'no plugin again (control)' : kind;
      console.log(`  ${title.padEnd(26)} ${spread(passes.map((pass) => value(pass[index], pass[0])))}`);
    }
  };
  lines('another route while users log out: requests/s ÷ no plugin', 1, (one, none) => one.rate / none.rate);
  lines('added to a logout, p50, ms', 1, (one, none) => one.p50 - none.p50);
  lines('added to a logout, p99, ms', 1, (one, none) => one.p99 - none.p99);
  lines('a logout, p50, ms', 0, (one) => one.p50);
  lines('a logout, p99, ms', 0, (one) => one.p99);
  console.log(
    `\nanother route: ${Math.round(median(passes.map(([none]) => none.rate)))} requests/s without plugin`,
  );
}

function reportBare(used, durable, passes) {
  console.log('\nadded to a logout, p50 ÷ one bare durable write, p50; then p50 and p99 of that write, ms');
  for (const [index, engine] of durable.entries()) {
    const [host, bare] = [used.indexOf(engine), used.length + index];
    const ratio = spread(passes.map((pass) => (pass[host].p50 - pass[0].p50) / pass[bare].p50));
    const values = ['p50', 'p99'].map((share) => spread(passes.map((pass) => pass[bare][share])));
    console.log(`  ${engine.padEnd(26)} ${ratio}   ${values.join('   ')}`);
  }
}
