// npm run bench -- delivery: logouts a second from `logoutUser` to the answer of a service that says 200 immediately, 16
// in flight, each with a token of its own; beside undici alone, and beside what one would write by hand, in processes that
// are measured in turn. Then how a backlog drains.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { drain } from './delivery-drain.mjs';
import { inTurn, median, spread } from './measuring.mjs';

const IN_FLIGHT = 16;
const ROUND_MS = 1000;
const service = new URL('./logout-service.mjs', import.meta.url);
const sender = new URL('./delivery-sender.mjs', import.meta.url);

/** By hand stands last: the plugin with each adapter is compared with all that follow. */
const kinds = ['plugin', 'plugin-http', 'undici', 'undici', 'by-hand-with-key', 'by-hand'];
const names = [
  'the plugin',
  "the plugin, http.adapter: 'http'",
  'undici.request, one token for all',
  'control: the same in another process',
  'axios by hand, its key imported once',
  'axios and jsonwebtoken by hand',
];
const PLUGINS = [0, 1];
const UNDICI = 2;
/** Of the plugin with the default adapter ÷ the other. */
const GOALS = { [UNDICI]: 0.45, 4: 2, 5: 2 };

export default async function delivery({ pairs, rounds, backlog }) {
  await sending(pairs, rounds);
  if (backlog > 0) await drain({ pairs, backlog });
  process.exit();
}

async function sending(pairs, rounds) {
  console.log(
    `from logoutUser to the service's answer, memory storage, ${IN_FLIGHT} in flight; ` +
      `${pairs} times fresh processes, ${rounds} rounds each, in turn`,
  );
  const passes = [];
  for (let pass = 0; pass < pairs; pass += 1) passes.push(await onePass(rounds, pass % 2 === 1));
  const ratios = (one, other, what) => passes.map((subjects) => subjects[one][what] / subjects[other][what]);
  for (const one of PLUGINS) {
    for (const other of names.keys()) {
      if (other < UNDICI || other === UNDICI + 1) continue;
      const rates = ratios(one, other, 'rate');
      const goal = one === 0 ? GOALS[other] : undefined;
      const verdict = goal && `   ${median(rates) >= goal ? 'PASS' : 'falls short'}, ≥ ${goal}`;
      console.log(
        `  ${`${names[one]} ÷`.padEnd(36)} ${names[other].padEnd(36)} ${spread(rates)}${verdict ?? ''}`,
      );
    }
  }
  const control = spread(ratios(UNDICI + 1, UNDICI, 'rate'));
  console.log(`  ${`${names[UNDICI + 1]} ÷`.padEnd(36)} ${names[UNDICI].padEnd(36)} ${control}`);
  for (const [index, name] of names.entries()) {
    const [rate, cpu] = ['rate', 'cpuMicros'].map((what) =>
      median(passes.map((subjects) => subjects[index][what])),
    );
    console.log(`  ${name.padEnd(36)} ${Math.round(rate)} logouts/s, ${cpu.toFixed(0)} µs of CPU each`);
  }
}

/** @returns for each subject its median rate, and the median CPU time of its process for one logout */
async function onePass(rounds, turned) {
  const server = fork(service);
  const [{ url }] = await once(server, 'message');
  const senders = await Promise.all(kinds.map((kind) => start(kind, url)));
  const cpu = senders.map(() => []);
  const subjects = senders.map((child, index) => async () => {
    child.send({ ms: ROUND_MS });
    const [{ rate, cpuMicros }] = await once(child, 'message');
    cpu[index].push(cpuMicros);
    return rate;
  });
  const rates = await inTurn(subjects, rounds, turned);
  for (const child of [...senders, server]) child.kill();
  // The first round is for warming up.
  return rates.map((rate, index) => ({ rate, cpuMicros: median(cpu[index].slice(1)) }));
}

async function start(kind, url) {
  const child = fork(sender, [kind, url, String(IN_FLIGHT)]);
  await once(child, 'message');
  return child;
}
