// One process that makes bare durable writes for the benchmark of the logout: what an engine takes for one row as large as
// that of a logout, through the same client or pool and with the same durability as the storage.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

const [engine, place] = process.argv.slice(2);
const VALUE = 'x'.repeat(400);

const writers = {
  lmdb: async () => {
    const { open } = await import('lmdb');
    // As libs/debate-space/src/storage/lmdb/lmdb-storage.ts opens it: a commit is synced before its promise resolves.
    const root = open({ path: `${place}/bare`, overlappingSync: false });
    const rows = root.openDB('rows', { encoding: 'string' });
    return (key) => rows.put(key, VALUE);
  },
  redis: async () => {
    const { createClient } = await import('redis');
    const client = createClient({ url: place });
    await client.connect();
    return (key) => client.sendCommand(['SET', key, VALUE]);
  },
  postgres: async () => {
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: place });
    await pool.query(
      'CREATE TABLE IF NOT EXISTS bare (key text COLLATE "C" PRIMARY KEY, value text NOT NULL)',
    );
    return (key) => pool.query('INSERT INTO bare VALUES ($1, $2)', [key, VALUE]);
  },
};
const write = await writers[engine]();

let writes = 0;
async function timed() {
  writes += 1;
  const begun = performance.now();
  await write(`${process.pid}:${writes}`);
  return performance.now() - begun;
}

for (let count = 0; count < 400; count += 1) await timed();
process.on('message', async ({ count, everyMs }) => {
  const begun = performance.now();
  const times = Array.from({ length: count }, async (_, index) => {
    await pause(begun + index * everyMs - performance.now());
    return timed();
  });
  process.send(await Promise.all(times));
});
process.once('disconnect', () => process.exit());
process.send({});
