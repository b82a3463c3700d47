// One logout queue in a process of its own, for the benchmark: is filled, appends, is opened again. Nobody delivers.
import { createHmac, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { QUEUE_FAMILIES } from '../../libs/debate-space/dist/logout/queue-keys.js';
import { outboxOn } from '../../libs/debate-space/dist/logout/logout-queue.js';
import { Sealer } from '../../libs/debate-space/dist/sealer.js';
import { Secret } from '../../libs/debate-space/dist/secret.js';
import { storageOptions } from '../test-crash/engines.mjs';

const LEASE_MS = 30_000;
const FILLING_AT_ONCE = 500;
const BATCH = 256;
const [engine, place, namespace] = process.argv.slice(2);
const uids = new Sealer(new Secret('a key'), 'uids');
const hash = (text) => createHmac('sha256', 'a key').update(text).digest('base64url');
const entry = () => {
  const [id, uid] = [randomUUID(), `user-${randomUUID()}`];
  return { id, uid, reason: 'destroyed', endedAt: Date.now(), sessionHash: hash(uid) };
};

const contained = (work) => work();
const { storage } = await storageOptions({ engine, place });
const begun = performance.now();
const opened = await storage.open({ namespace, families: QUEUE_FAMILIES, contained });
const outbox = outboxOn(opened, storage, {
  uidHash: hash,
  seal: (uid) => uids.seal(uid),
  unseal: (sealed) => uids.open(sealed),
  contained,
  keepFinishedMs: 0,
});
const openMs = performance.now() - begun;

async function inParallel(entries, atOnce, work) {
  const left = entries.values();
  const workInTurn = async () => {
    for (const one of left) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, workInTurn));
}

async function append(entries, atOnce) {
  const times = [];
  await inParallel(entries, atOnce, async (one) => {
    const from = performance.now();
    await outbox.hold(one, LEASE_MS);
    await outbox.release(one.id);
    times.push(performance.now() - from);
  });
  return times;
}

const tasks = {
  fill: async ({ count }) => {
    for (let missing = count; missing > 0; missing -= 10_000) {
      await append(Array.from({ length: Math.min(10_000, missing) }, entry), FILLING_AT_ONCE);
    }
    return { pending: (await outbox.counts()).pending };
  },
  /** Appends so many, measured, and takes as many out again, not measured. */
  append: async ({ count, atOnce }) => {
    const entries = Array.from({ length: count }, entry);
    const from = performance.now();
    const times = await append(entries, atOnce);
    const eachMs = (performance.now() - from) / count;
    for (let left = count; left > 0;) {
      const jobs = await outbox.claim(Math.min(left, BATCH), LEASE_MS);
      await inParallel(jobs, 16, (job) => outbox.finish(job.entry.id, 1));
      left -= jobs.length;
    }
    return { eachMs, times };
  },
  claim: async () => {
    const from = performance.now();
    const jobs = await outbox.claim(1, LEASE_MS);
    return { claimed: jobs.length, recoveryMs: openMs + performance.now() - from };
  },
};

process.on('message', async ({ task, ...options }) => process.send(await tasks[task](options)));
process.once('disconnect', () => process.exit());
process.send({});
