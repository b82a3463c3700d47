// One logout queue in a process of its own, for the benchmark: is filled, appends, is opened again. Nobody delivers.
import { performance } from 'node:perf_hooks';
import { LogoutQueue } from '../../libs/debate-space/dist/logout/logout-queue.js';
import { QUEUE_FAMILIES } from '../../libs/debate-space/dist/logout/queue-keys.js';
import { Secret } from '../../libs/debate-space/dist/secrets/secret.js';
import { uidCipher } from '../../libs/debate-space/dist/secrets/uid-cipher.js';
import { storageOptions } from '../test-crash/engines.mjs';
import { copyEntries } from './outbox-copies.mjs';
import { countClaims, cycle } from './outbox-cycles.mjs';
import { append, inParallel, newEntry } from './outbox-entries.mjs';

const FILLED_AT_A_TIME = 500;
const BATCH = 256;
const [engine, place, namespace] = process.argv.slice(2);

const { storage } = await storageOptions({ engine, place });
const begun = performance.now();
const opened = await storage.open({ namespace, families: QUEUE_FAMILIES, contained: (work) => work() });
const counted = countClaims(opened);
const uids = uidCipher([new Secret('a key')], namespace);
const queue = new LogoutQueue(counted.storage, storage, { uids, keepFinishedMs: 0 });
const openMs = performance.now() - begun;

const tasks = {
  fill: async ({ count }) => {
    for (let missing = count; missing > 0; missing -= 10_000) {
      const entries = Array.from({ length: Math.min(10_000, missing) }, newEntry);
      await append(queue, entries, FILLED_AT_A_TIME);
    }
    return { pending: (await queue.counts()).pending };
  },
  /** As `fill`, but past the queue: a million appends would take a quarter of an hour on some. */
  copy: ({ count }) => copyEntries(opened, storage, uids, count),
  /** Appends so many, measured, and takes as many out again, not measured. */
  append: async ({ count, atOnce }) => {
    const entries = Array.from({ length: count }, newEntry);
    const from = performance.now();
    const times = await append(queue, entries, atOnce);
    const eachMs = (performance.now() - from) / count;
    for (let left = count; left > 0;) {
      const jobs = await queue.claim(Math.min(left, BATCH));
      await inParallel(jobs, 16, (job) => queue.finish(job.entry.id, 1));
      left -= jobs.length;
    }
    return { eachMs, times };
  },
  claim: async () => {
    const from = performance.now();
    const jobs = await queue.claim(1);
    return { claimed: jobs.length, recoveryMs: openMs + performance.now() - from };
  },
  cycle: ({ ms }) => cycle(queue, counted, ms),
};

process.on('message', async ({ task, ...options }) => process.send(await tasks[task](options)));
process.once('disconnect', () => process.exit());
process.send({});
