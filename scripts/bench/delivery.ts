// npm run bench -- delivery: logouts a second from `logoutUser` to the answer of a service that says 200 immediately, 16
// in flight, each with a token of its own; beside undici alone, and beside what one would write by hand, in processes that
// are measured in turn.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { BenchOptions } from './bench-options.js';
import type { SenderKind, Sent } from './delivery-sender.js';
import { inTurn, median, spread } from './measuring.js';

const IN_FLIGHT = 16;
const ROUND_MS = 1000;
const service = new URL('./logout-service.ts', import.meta.url);
const sender = new URL('./delivery-sender.ts', import.meta.url);

/** The plugin with each adapter is compared with all that follow. */
const subjects: readonly Subject[] = [
  { kind: 'plugin', name: 'the plugin' },
  { kind: 'plugin-http', name: "the plugin, http.adapter: 'http'" },
  { kind: 'undici', name: 'undici.request, one token for all', goal: 0.35 },
  { kind: 'undici', name: 'control: the same in another process' },
  { kind: 'by-hand-with-key', name: 'axios by hand, its key imported once', goal: 1.5 },
  { kind: 'by-hand', name: 'axios and jsonwebtoken by hand', goal: 1.5 },
];
const PLUGINS = [0, 1];
const UNDICI = 2;
const CONTROL = 3;

interface Subject {
  readonly kind: SenderKind;
  readonly name: string;
  /** Of the plugin with the default adapter ÷ this. */
  readonly goal?: number;
}

export default async function delivery({ pairs, rounds }: BenchOptions): Promise<void> {
  console.log(
    `from logoutUser to the service's answer, memory storage, ${IN_FLIGHT} in flight; ` +
      `${pairs} times fresh processes, ${rounds} rounds each, in turn`,
  );
  const passes: Sent[][] = [];
  for (let pass = 0; pass < pairs; pass += 1) passes.push(await onePass(rounds, pass % 2 === 1));
  const valuesOf = (index: number, what: keyof Sent): number[] =>
    passes.map((sent) => sent[index]?.[what] ?? NaN);
  const compare = (one: number, other: number, goal?: number): void => {
    const others = valuesOf(other, 'rate');
    const ratios = valuesOf(one, 'rate').map((rate, pass) => rate / (others[pass] ?? NaN));
    const nameOf = (index: number): string => subjects[index]?.name ?? '';
    const verdict =
      goal === undefined ? '' : `   ${median(ratios) >= goal ? 'PASS' : 'falls short'}, ≥ ${goal}`;
    console.log(`  ${`${nameOf(one)} ÷`.padEnd(36)} ${nameOf(other).padEnd(36)} ${spread(ratios)}${verdict}`);
  };
  for (const one of PLUGINS) {
    for (const [other, { goal }] of subjects.entries()) {
      if (other < UNDICI || other === CONTROL) continue;
      compare(one, other, one === 0 ? goal : undefined);
    }
  }
  compare(CONTROL, UNDICI);
  for (const [index, { name }] of subjects.entries()) {
    const [rate, cpu] = [median(valuesOf(index, 'rate')), median(valuesOf(index, 'cpuMicros'))];
    console.log(`  ${name.padEnd(36)} ${Math.round(rate)} logouts/s, ${cpu.toFixed(0)} µs of CPU each`);
  }
}

/** @returns for each subject its median rate, and the median CPU time of its process for one logout */
async function onePass(rounds: number, turned: boolean): Promise<Sent[]> {
  const server = fork(service);
  const [{ url }] = (await once(server, 'message')) as [{ readonly url: string }];
  const senders = await Promise.all(subjects.map(({ kind }) => start(kind, url)));
  const measured = senders.map((child) => ({ child, cpu: [] as number[] }));
  const rounders = measured.map(({ child, cpu }) => async () => {
    child.send({ ms: ROUND_MS });
    const [{ rate, cpuMicros }] = (await once(child, 'message')) as [Sent];
    cpu.push(cpuMicros);
    return rate;
  });
  const rates = await inTurn(rounders, rounds, turned);
  for (const child of [...senders, server]) child.kill();
  // The first round is for warming up.
  return measured.map(({ cpu }, index) => ({ rate: rates[index] ?? NaN, cpuMicros: median(cpu.slice(1)) }));
}

async function start(kind: SenderKind, url: string): Promise<ChildProcess> {
  const child = fork(sender, [kind, url, String(IN_FLIGHT)]);
  await once(child, 'message');
  return child;
}
