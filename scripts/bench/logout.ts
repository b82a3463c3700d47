// npm run bench -- logout: what a logout's response waits for with each engine, beside no plugin, beside one bare durable
// write of that engine, and beside a handler that waits for the service; and what other routes notice of logouts.
import { durableEngines, type EngineName } from '../test-crash/engines.js';
import type { BenchOptions } from './bench-options.js';
import { logoutTimes, rateBesideLogouts, warmUp } from './logout-browsers.js';
import { inTurn, median, quantile, spread } from './measuring.js';
import { ask, kill, start, storagePlaces, type Started } from './processes.js';
import type { Question } from './storage-process.js';

/** In milliseconds, and in requests a second of the other route: of a bare write there is none. */
interface Measured {
  readonly p50: number;
  readonly p99: number;
  readonly rate: number;
}

type Kind = EngineName | 'no plugin' | 'by hand';

const EVERY_MS = 20;
const LOGOUTS = 10; // of a turn: the next process has its turn soon, so that what else the machine does meets all of them
const TURNS = 5; // of a round
const BESIDE = { connections: 8, logouts: 50, everyMs: EVERY_MS };
const NONE: Measured = { p50: NaN, p99: NaN, rate: NaN };
// The first is what the others are compared with; the second is its equal, and how they differ is the machine's.
const KINDS: readonly Kind[] = ['no plugin', 'no plugin', 'memory', ...durableEngines, 'by hand'];
const WRITES = ['bare', 'add'] as const;
const WARM_UP = 100;

/** A process that makes durable writes: `bare`, or what the plugin writes before the answer to a logout leaves. */
type Writer = Started<{ readonly what: (typeof WRITES)[number] }>;

function question(what: Writer['what'], count: number) {
  return { task: 'timed', argument: { what, count, everyMs: EVERY_MS } } satisfies Question;
}

export default async function logout({ pairs, rounds, engines }: BenchOptions): Promise<void> {
  const places = await storagePlaces();
  const [service, slow] = [await start('./logout-service.ts'), await start('./logout-service.ts', ['100'])];
  const used = KINDS.filter((kind) => kind === 'no plugin' || kind === 'by hand' || engines.includes(kind));
  const durable = durableEngines.filter((engine) => engines.includes(engine));
  console.log(`${pairs} times fresh processes, ${rounds} rounds each, in turn; ${1000 / EVERY_MS} logouts/s`);
  const passes: (readonly Measured[])[] = [];
  for (let pass = 0; pass < pairs; pass += 1) {
    const hosts = await Promise.all(
      used.map((kind) => {
        const place = kind === 'no plugin' || kind === 'by hand' ? '' : places[kind];
        const { url } = kind === 'by hand' ? slow : service;
        return start('./logout-host.ts', [kind, url, `pass-${pass}`, place]);
      }),
    );
    const writers: Writer[] = [];
    for (const what of WRITES)
      for (const engine of durable) {
        const { child } = await start('./storage-process.ts', [engine, places[engine], 'writes']);
        await ask(child, question(what, WARM_UP)); // compiles the code
        writers.push({ child, what });
      }
    passes.push(await onePass(hosts, writers, rounds, pass % 2 === 1));
    for (const { child } of [...hosts, ...writers]) await kill(child);
  }
  report(used, passes);
  reportWrites(used, durable, passes);
  process.exit();
}

/** For each host, then for each process of writes. */
async function onePass(
  hosts: readonly Started[],
  writers: readonly Writer[],
  rounds: number,
  turned: boolean,
): Promise<readonly Measured[]> {
  for (const { url } of hosts) await warmUp(url);
  const turns = [
    ...hosts.map(
      ({ url }) =>
        () =>
          logoutTimes(url, LOGOUTS, EVERY_MS),
    ),
    ...writers.map(
      ({ child, what }) =>
        async () =>
          (await ask(child, question(what, LOGOUTS))) as number[],
    ),
  ];
  const times = turns.map((): number[][] => []);
  const timing = turns.map((turn, index) => async () => {
    times[index]?.push(await turn());
    return 0;
  });
  await inTurn(timing, rounds * TURNS, turned);
  const beside = hosts.map(
    ({ url }) =>
      () =>
        rateBesideLogouts(url, BESIDE),
  );
  const rates = await inTurn(beside, rounds, turned);
  return times.map((each, index) => {
    const all = each.slice(1).flat(); // the first round is for warming up
    return { p50: quantile(all, 0.5), p99: quantile(all, 0.99), rate: rates[index] ?? NaN };
  });
}

function report(used: readonly Kind[], passes: readonly (readonly Measured[])[]): void {
  const lines = (text: string, first: number, value: (one: Measured, none: Measured) => number): void => {
    console.log(`\n${text}`);
    for (const [index, kind] of used.entries()) {
      if (index < first) continue;
      const title = index === 1 ? 'no plugin again (control)' : kind;
      const values = passes.map((pass) => value(pass[index] ?? NONE, pass[0] ?? NONE));
      console.log(`  ${title.padEnd(26)} ${spread(values)}`);
    }
  };
  lines('another route while users log out: requests/s ÷ no plugin', 1, (one, none) => one.rate / none.rate);
  lines('added to a logout, p50, ms', 1, (one, none) => one.p50 - none.p50);
  lines('added to a logout, p99, ms', 1, (one, none) => one.p99 - none.p99);
  lines('a logout, p50, ms', 0, (one) => one.p50);
  lines('a logout, p99, ms', 0, (one) => one.p99);
  const rate = median(passes.map(([none = NONE]) => none.rate));
  console.log(`\nanother route: ${Math.round(rate)} requests/s without plugin`);
}

function reportWrites(
  used: readonly Kind[],
  durable: readonly EngineName[],
  passes: readonly (readonly Measured[])[],
): void {
  console.log(
    '\np50 ÷ that of one bare durable write: added to a logout, and an add to the queue in a process of its own',
  );
  for (const [index, engine] of durable.entries()) {
    const at = used.length + index;
    const [bare, adds] = [at, at + durable.length].map((n) => passes.map((pass) => pass[n] ?? NONE));
    const added = passes.map((pass) => (pass[used.indexOf(engine)] ?? NONE).p50 - (pass[0] ?? NONE).p50);
    const ratioOf = (values: readonly number[]): string =>
      spread(values.map((ms, pass) => ms / (bare?.[pass] ?? NONE).p50));
    const alone = ratioOf((adds ?? []).map(({ p50 }) => p50));
    const [p50, p99] = (['p50', 'p99'] as const).map((what) => spread((bare ?? []).map((one) => one[what])));
    console.log(
      `  ${engine.padEnd(26)} ${ratioOf(added)}   ${alone}; the bare write, p50 and p99: ${p50}, ${p99} ms`,
    );
  }
}
