// The storages in a host: each loads by require and by import, and says what it lacks; those that need no server keep
// their contract.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const { memoryStorage } = require('nestjs-debate-space');
const { lmdbStorage } = require('nestjs-debate-space/lmdb');
const { postgresMigration, postgresStorage } = require('nestjs-debate-space/postgres');
const { redisStorage } = require('nestjs-debate-space/redis');
const { storageContract } = require('nestjs-debate-space/storage-contract');

const isInstalled = process.argv[2] === 'installed';
const context = { namespace: 'host', families: ['a'], contained: (work) => work() };
const refused = (words) => (error) => {
  assert.equal(error.name, 'StorageError', `${error}`);
  assert.match(error.message, words);
  return true;
};
const away = () => Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));

async function main() {
  const subpaths = {
    lmdb: { lmdbStorage },
    postgres: { postgresStorage, postgresMigration },
    redis: { redisStorage },
    'storage-contract': { storageContract },
  };
  for (const [subpath, required] of Object.entries(subpaths)) {
    const imported = await import(`nestjs-debate-space/${subpath}`);
    for (const [name, value] of Object.entries(required)) assert.equal(imported[name], value);
  }

  const root = mkdtempSync(join(process.cwd(), 'storage-'));
  const place = () => lmdbStorage({ path: mkdtempSync(join(root, 'place-')) });
  const redis = redisStorage({ sendCommand: away });
  const postgres = postgresStorage({ query: away });
  await assert.rejects(async () => redis.open(context), refused(/Redis failed \(ECONNREFUSED\)/));
  await assert.rejects(async () => postgres.open(context), refused(/Postgres failed \(ECONNREFUSED\)/));
  assert.match(postgresMigration({ table: 'host.storage' }), /CREATE TABLE IF NOT EXISTS/);
  await keepsContract({ place: memoryStorage, isShared: false });
  if (isInstalled) await keepsContract({ place, isShared: true });
  else await assert.rejects(async () => place().open(context), refused(/npm install lmdb/));
  rmSync(root, { recursive: true });
}

async function keepsContract(subject) {
  for (const { run } of storageContract(subject)) await run();
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
