// How fast a backlog drains with each storage, to a service that is healthy and to one that is flaky; and what one that is
// down gets. The plugin is as a host has it: the runner, the circuit breaker and the policy are the real ones.
import { setTimeout as sleep } from 'node:timers/promises';
import { median, spread } from './measuring.mjs';
import { ask, kill, start, storagePlaces } from './outbox-places.mjs';

const GOAL = 0.6;
const KINDS = ['healthy', 'flaky'];
/** The goal is one for the rate. The last few only wait for the end of their backoff, however long the backlog is. */
const JUDGED = 'its first 99 %';
const PARTS = { 'the whole backlog': 1, 'its first 99 %': 0.99, 'its first 80 %': 0.8 };
/** Of the backlog that is given: what drains faster needs a larger one, or the backoff of the last few is most of the time. */
const SHARES = { memory: 5, lmdb: 1, redis: 2, postgres: 0.5 };
const DOWN_BACKLOG = 1_000;
const DOWN_MS = 10_000;
const ASK_EVERY_MS = 100;

export async function drain({ pairs, backlog }) {
  const { places, versions } = await storagePlaces();
  console.log(`\n${versions}`);
  console.log(
    `a backlog is drained by the plugin with its defaults, ${pairs} times each, in turn, in fresh processes;`,
  );
  console.log('flaky: 10 % of the requests are answered with 503, 5 % of the connections are reset');
  for (const engine of Object.keys(places).filter((name) => places[name] !== undefined)) {
    const place = { engine, place: places[engine] };
    const size = Math.round(backlog * SHARES[engine]);
    const passes = [];
    for (let pass = 0; pass < pairs; pass += 1) {
      const order = pass % 2 === 0 ? KINDS : KINDS.toReversed();
      const measured = {};
      for (const kind of order) measured[kind] = await oneDrain(place, kind, pass, size);
      passes.push(measured);
    }
    report(`${engine}, ${size} waiting`, passes);
    await reportDown(place);
  }
}

/** @returns for each part, how many logouts a second were delivered */
async function oneDrain({ engine, place }, kind, pass, backlog) {
  const service = await start('./delivery-service.mjs', [kind]);
  const args = [engine, place, `${kind}-${pass}`, service.url, String(backlog)];
  const host = await start('./delivery-host.mjs', args);
  while ((await ask(service.child, { question: 'count' })).delivered < backlog) await sleep(ASK_EVERY_MS);
  const counts = Object.values(PARTS).map((share) => Math.round(backlog * share));
  const { times } = await ask(service.child, { question: 'times', counts });
  for (const { child } of [host, service]) await kill(child);
  return counts.map((count, index) => count / (times[index] / 1000));
}

function report(title, passes) {
  console.log(`\n${title}`);
  for (const [index, part] of Object.keys(PARTS).entries()) {
    const ratios = passes.map(({ flaky, healthy }) => flaky[index] / healthy[index]);
    const verdict = median(ratios) >= GOAL ? 'PASS' : 'falls short';
    const judged = part === JUDGED ? `   ${verdict}, ≥ ${GOAL}` : '';
    console.log(`  ${`flaky ÷ healthy, ${part}`.padEnd(40)} ${spread(ratios)}${judged}`);
  }
  for (const kind of KINDS) {
    for (const [index, part] of Object.keys(PARTS).entries()) {
      const rate = Math.round(median(passes.map((pass) => pass[kind][index])));
      console.log(`  ${`${kind}, ${part}`.padEnd(40)} ${rate} logouts/s`);
    }
  }
}

/** What a service that is down gets while a backlog waits. */
async function reportDown({ engine, place }) {
  const service = await start('./delivery-service.mjs', ['down']);
  const args = [engine, place, 'down', service.url, String(DOWN_BACKLOG)];
  const host = await start('./delivery-host.mjs', args);
  await sleep(DOWN_MS);
  const { requests } = await ask(service.child, { question: 'requests' });
  for (const { child } of [host, service]) await kill(child);
  const isLate = ({ at }) => at > 1_000; // those that were under way when the breaker opened are through
  const probes = requests.filter(isLate);
  const together = Math.max(0, ...probes.map(({ underWay }) => underWay));
  console.log(
    `  down, ${DOWN_BACKLOG} waiting: ${requests.length} requests in ${DOWN_MS / 1000} s, ` +
      `${probes.length} of them after the first second, at most ${together} at a time`,
  );
}
