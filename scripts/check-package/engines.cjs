// The durable engines in a host: what is said when their packages are missing, and that they work when they are there.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { OutboxError } = require('nestjs-debate-space');
const { bullmqOutbox } = require('nestjs-debate-space/bullmq');
const { lmdbOutbox } = require('nestjs-debate-space/lmdb');

const [installed] = process.argv.slice(2);
const context = {
  namespace: 'host',
  uidHash: String,
  seal: String,
  unseal: String,
  contained: (work) => work(),
  keepFinishedMs: 60_000,
};
const refused = (words) => (error) => {
  assert.ok(error instanceof OutboxError, `${error}`);
  assert.match(error.message, words);
  return true;
};

async function main() {
  const path = mkdtempSync(join(process.cwd(), 'outbox-'));
  const redis = bullmqOutbox({ connection: 'redis://127.0.0.1:9' });
  if (installed !== 'installed') {
    await assert.rejects(async () => lmdbOutbox({ path }).open(context), refused(/npm install lmdb/));
    await assert.rejects(async () => redis.open(context), refused(/npm install bullmq ioredis/));
  } else {
    await assert.rejects(async () => redis.open(context), refused(/Redis at 127\.0\.0\.1:9/));
    const outbox = await lmdbOutbox({ path }).open(context);
    await outbox.hold({ id: 'a', uid: 'alice', reason: 'destroyed', endedAt: Date.now() }, 1000);
    await outbox.release('a');
    const [job] = await outbox.claim(1, 1000);
    assert.equal(job.entry.uid, 'alice');
    await outbox.close();
  }
  rmSync(path, { recursive: true });
}
main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
