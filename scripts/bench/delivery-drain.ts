// How fast a backlog drains with each storage, to a service that is healthy and to one that is flaky; and what one that is
// down gets. The plugin is as a host has it: the runner, the circuit breaker and the policy are the real ones.
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineName } from '../test-crash/engines.js';
import type { BenchOptions } from './bench-options.js';
import type { Arrival } from './delivery-service.js';
import { median, spread } from './measuring.js';
import { ask, kill, start, storagePlaces } from './processes.js';

const GOAL = 0.6;
const KINDS = ['healthy', 'flaky'] as const;
/** The goal is one for the rate. The last few only wait for the end of their backoff, however long the backlog is. */
const JUDGED = 'its first 99 %';
const PARTS = [
  ['the whole backlog', 1],
  ['its first 99 %', 0.99],
  ['its first 80 %', 0.8],
] as const;
/** Of the backlog that is given: what drains faster needs a larger one, or the backoff of the last few is most of the time. */
const SHARES: readonly (readonly [engine: EngineName, share: number])[] = [
  ['memory', 5],
  ['sqlite', 1],
  ['postgres', 1],
  ['mariadb', 1],
];
const DOWN_BACKLOG = 1_000;
const DOWN_MS = 10_000;
const ASK_EVERY_MS = 100;

type Judged = (typeof KINDS)[number];

interface Place {
  readonly engine: EngineName;
  readonly place: string;
}

/** For each of `PARTS`, how many logouts a second were delivered. */
type Rates = readonly number[];
type Pass = Readonly<Record<Judged, Rates>>;

export async function drain({ pairs, backlog }: Pick<BenchOptions, 'pairs' | 'backlog'>): Promise<void> {
  const places = await storagePlaces();
  console.log(
    `a backlog is drained by the plugin with its defaults, ${pairs} times each, in turn, in fresh processes;`,
  );
  console.log('flaky: 10 % of the requests are answered with 503, 5 % of the connections are reset');
  for (const [engine, share] of SHARES) {
    const place = places[engine];
    const size = Math.round(backlog * share);
    const passes: Pass[] = [];
    for (let pass = 0; pass < pairs; pass += 1) {
      const order = pass % 2 === 0 ? KINDS : KINDS.toReversed();
      const measured: Record<Judged, Rates> = { healthy: [], flaky: [] };
      for (const kind of order) measured[kind] = await oneDrain({ engine, place }, kind, pass, size);
      passes.push(measured);
    }
    report(`${engine}, ${size} waiting`, passes);
    await reportDown({ engine, place });
  }
}

async function oneDrain(
  { engine, place }: Place,
  kind: Judged,
  pass: number,
  backlog: number,
): Promise<Rates> {
  const service = await start('./delivery-service.ts', [kind]);
  const args = [engine, place, `${kind}-${pass}`, service.url, String(backlog)];
  const host = await start('./delivery-host.ts', args);
  for (;;) {
    const counted = (await ask(service.child, { question: 'count' })) as { readonly delivered: number };
    if (counted.delivered >= backlog) break;
    await sleep(ASK_EVERY_MS);
  }
  const counts = PARTS.map(([, share]) => Math.round(backlog * share));
  const answer = (await ask(service.child, { question: 'times', counts })) as {
    readonly times: readonly number[];
  };
  for (const { child } of [host, service]) await kill(child);
  return counts.map((count, index) => count / ((answer.times[index] ?? NaN) / 1000));
}

function report(title: string, passes: readonly Pass[]): void {
  console.log(`\n${title}`);
  for (const [index, [part]] of PARTS.entries()) {
    const ratios = passes.map(({ flaky, healthy }) => (flaky[index] ?? NaN) / (healthy[index] ?? NaN));
    const verdict = median(ratios) >= GOAL ? 'PASS' : 'falls short';
    const judged = part === JUDGED ? `   ${verdict}, ≥ ${GOAL}` : '';
    console.log(`  ${`flaky ÷ healthy, ${part}`.padEnd(40)} ${spread(ratios)}${judged}`);
  }
  for (const kind of KINDS) {
    for (const [index, [part]] of PARTS.entries()) {
      const rate = Math.round(median(passes.map((pass) => pass[kind][index] ?? NaN)));
      console.log(`  ${`${kind}, ${part}`.padEnd(40)} ${rate} logouts/s`);
    }
  }
}

/** What a service that is down gets while a backlog waits. */
async function reportDown({ engine, place }: Place): Promise<void> {
  const service = await start('./delivery-service.ts', ['down']);
  const args = [engine, place, 'down', service.url, String(DOWN_BACKLOG)];
  const host = await start('./delivery-host.ts', args);
  await sleep(DOWN_MS);
  const { requests } = (await ask(service.child, { question: 'requests' })) as {
    readonly requests: readonly Arrival[];
  };
  for (const { child } of [host, service]) await kill(child);
  const isLate = ({ at }: Arrival): boolean => at > 1_000; // those that were under way when the breaker opened are through
  const probes = requests.filter(isLate);
  const together = Math.max(0, ...probes.map(({ underWay }) => underWay));
  console.log(
    `  down, ${DOWN_BACKLOG} waiting: ${requests.length} requests in ${DOWN_MS / 1000} s, ` +
      `${probes.length} of them after the first second, at most ${together} at a time`,
  );
}
