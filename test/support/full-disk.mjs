// A process whose disk is full for a while: what its logout queue on lmdb takes, refuses, notes and delivers. The limit of a
// process on the size of its files does what a full disk does, and needs no disk; it would hit a test runner's own files
// as well.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import { QUEUE_FAMILIES } from '../../libs/debate-space/dist/logout/queue-keys.js';
import { outboxOn } from '../../libs/debate-space/dist/logout/storage-outbox.js';

const [path] = process.argv.slice(2);
const contained = (work) => work();
const engine = lmdbStorage({ path });
const families = [...QUEUE_FAMILIES, 'erasure'];
const outbox = outboxOn(await engine.open({ namespace: 'app', families, contained }), engine, {
  uidHash: String,
  seal: String,
  unseal: String,
  contained,
  keepFinishedMs: 60_000,
});
const limit = (bytes) => execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);
const holdSome = (prefix, count, leaseMs) => {
  const hold = (_, n) =>
    outbox.hold({ id: `${prefix}-${n}`, uid: 'alice', reason: 'destroyed', endedAt: 1 }, leaseMs);
  return Promise.allSettled(Array.from({ length: count }, hold));
};

async function deliverAll() {
  let count = 0;
  for (;;) {
    const jobs = await outbox.claim(500, 60_000);
    if (jobs.length === 0) return count;
    await Promise.all(jobs.map((job) => outbox.finish(job.entry.id, 1)));
    count += jobs.length;
  }
}

limit(statSync(join(path, 'app', 'data.mdb')).size + 1_000_000);
let refused;
let taken = 0;
while (refused === undefined && taken < 50_000) {
  const results = await holdSome(`at ${taken}`, 50, 1);
  taken += results.filter(({ status }) => status === 'fulfilled').length;
  refused = results.find(({ status }) => status === 'rejected')?.reason;
}
const { records } = outbox;
const note = (prefix) =>
  records.change(
    new Map(),
    new Map(Array.from({ length: 1000 }, (_, n) => [`${prefix}/${n}`, 'x'.repeat(300)])),
  );
const unnoted = await note('full').then(() => undefined, (error) => error); // prettier-ignore
const { held } = await outbox.counts();
await sleep(2);
const delivered = await deliverAll();
limit('unlimited');
await holdSome('later', 200, 1);
await sleep(2);
const later = await deliverAll();
const noted = (await note('later')) && records.range('', '~', 2000).length;
await outbox.close();
const told = ({ name, message } = {}) => ({ name, message });
console.log(
  JSON.stringify({
    refused: told(refused),
    unnoted: told(unnoted),
    isKept: held === taken,
    isDelivered: delivered === taken,
    later,
    noted,
  }),
);
