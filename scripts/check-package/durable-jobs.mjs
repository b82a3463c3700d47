// A process with durable-jobs and nothing else of ours, which adds jobs and works them until it is killed; with `drain` it
// adds none, and ends when none waits. Arguments: engine, place, ledger, drain. The ledger has a line for each thing that
// happened: `added`, `tried`, `done` or `parked`, and the id of the job.
import { appendFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { openJobs, ParkJob } from 'durable-jobs';

const [, , engine, place, ledger, drain] = process.argv;
const AT_ONCE = 5;
const note = (what, id) => appendFileSync(ledger, `${what} ${id}\n`);

async function storage() {
  if (engine === 'lmdb') {
    const { lmdbStorage } = await import('durable-jobs/lmdb');
    return lmdbStorage({ path: place });
  }
  const [{ redisStorage }, { Redis }] = await Promise.all([import('durable-jobs/redis'), import('ioredis')]);
  const client = new Redis(place);
  return redisStorage({ sendCommand: (command, ...args) => client.call(command, ...args) });
}

const jobs = await openJobs(await storage(), {
  namespace: 'check',
  storageKey: 'only for this check',
  onFault: (where, error) => where === 'note' || note(`fault:${error.name}`, where),
});
/** Every fourth one throws when it is tried first, every fifth one is parked. */
jobs.work('note', async ({ id, payload, attempts }) => {
  note('tried', id);
  const n = Number(payload);
  await pause(n % 20);
  if (n % 5 === 0) throw new ParkJob('somebody has to look at it');
  if (n % 4 === 0 && attempts === 0) throw new Error('not yet');
  note('done', id);
});

if (drain) {
  while ((await jobs.stats()).pending > 0) await pause(200);
  for (const { id } of await jobs.parked('note', { limit: 100_000 })) note('parked', id);
  await jobs.close();
  process.exit();
}
for (let n = 0; ; n += AT_ONCE) {
  const added = Array.from({ length: AT_ONCE }, (_, k) => ({ kind: 'note', payload: String(n + k) }));
  const named = await jobs.add(added);
  for (const [k, { id }] of named.entries()) note('added', `${id} ${n + k}`);
}
