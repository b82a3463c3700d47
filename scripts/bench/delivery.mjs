// npm run bench -- delivery: logout notifications a second, 16 in flight, each with a token of its own, to a service
// that answers 200 immediately; beside undici alone, and beside what one would write by hand. Then how a backlog drains.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { drain } from './delivery-drain.mjs';
import { inTurn, median, spread } from './measuring.mjs';

const IN_FLIGHT = 16;
const ROUND_MS = 1000;
const service = new URL('./logout-service.mjs', import.meta.url);
const sender = new URL('./logout-sender.mjs', import.meta.url);

const kinds = ['plugin', 'undici', 'by-hand', 'by-hand-with-key'];
const names = [
  'the plugin',
  'undici alone, one token for all',
  'axios and jsonwebtoken by hand',
  'the same, the key imported once',
];

export default async function delivery({ pairs, rounds, backlog }) {
  await sending(pairs, rounds);
  await drain({ pairs, backlog });
  process.exit();
}

async function sending(pairs, rounds) {
  console.log(`${pairs} times fresh processes, ${rounds} rounds each, in turn; ${IN_FLIGHT} in flight`);
  const passes = [];
  for (let pass = 0; pass < pairs; pass += 1) passes.push(await onePass(rounds, pass % 2 === 1));
  for (const other of [1, 2, 3]) {
    const ratios = passes.map((rates) => rates[0] / rates[other]);
    console.log(`  ${`the plugin ÷ ${names[other]}`.padEnd(46)} ${spread(ratios)}`);
  }
  for (const [index, name] of names.entries()) {
    const rate = Math.round(median(passes.map((rates) => rates[index])));
    console.log(`  ${name.padEnd(46)} ${rate} POSTs/s`);
  }
}

async function onePass(rounds, turned) {
  const server = fork(service);
  const [{ url }] = await once(server, 'message');
  const senders = await Promise.all(kinds.map((kind) => start(kind, url)));
  const subjects = senders.map((child) => async () => {
    child.send({ ms: ROUND_MS });
    const [{ rate }] = await once(child, 'message');
    return rate;
  });
  const measured = await inTurn(subjects, rounds, turned);
  for (const child of [...senders, server]) child.kill();
  return measured;
}

async function start(kind, url) {
  const child = fork(sender, [kind, url, String(IN_FLIGHT)]);
  await once(child, 'message');
  return child;
}
