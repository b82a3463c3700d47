// One process that makes durable writes for the benchmark of the logout. `bare`: what an engine takes for one row as large
// as that of a logout, through the same client or pool and with the same durability as the storage. `add`: what the plugin
// writes before the answer to a logout leaves, and nothing else.
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { storageOptions, type EngineName } from '../test-crash/engines.js';
import { LogoutQueue, QUEUE_FAMILIES, Secret, uidCipher } from './built-queue.js';
import { newEntry } from './jobs-entries.js';

/** How many writes to begin, one every so often; the answer is how long each took, in milliseconds. */
export interface WritesQuestion {
  readonly count: number;
  readonly everyMs: number;
}

const [engine = '', place = '', what = ''] = process.argv.slice(2);
const VALUE = 'x'.repeat(400);
const WARM_UP = 400;

type Write = (key: string) => Promise<unknown>;

const writers: Readonly<Record<string, () => Promise<Write>>> = {
  lmdb: async () => {
    const { open } = await import('lmdb');
    // As libs/durable-jobs/src/lmdb.ts opens it: a commit is synced before its promise resolves.
    const root = open({ path: `${place}/bare`, overlappingSync: false });
    const rows = root.openDB<string, string>('rows', { encoding: 'string' });
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
async function adding(): Promise<Write> {
  const { storage } = await storageOptions({ engine: engine as EngineName, place });
  const namespace = 'adds';
  const contained = (work: () => void): void => {
    work();
  };
  const opened = await storage.open({ namespace, families: QUEUE_FAMILIES, contained });
  const uids = uidCipher([new Secret('a key')], namespace);
  const queue = new LogoutQueue(opened, storage, { uids, keepFinishedMs: 0 });
  return async () => queue.add([newEntry()]);
}

const open = what === 'add' ? adding : writers[engine];
if (!open) throw new Error(`no such engine: ${engine}`);
const write = await open();

let writes = 0;
async function timed(): Promise<number> {
  writes += 1;
  const begun = performance.now();
  await write(`${process.pid}:${writes}`);
  return performance.now() - begun;
}

async function timesOf({ count, everyMs }: WritesQuestion): Promise<void> {
  const begun = performance.now();
  const times = Array.from({ length: count }, async (_, index) => {
    await pause(begun + index * everyMs - performance.now());
    return timed();
  });
  process.send?.(await Promise.all(times));
}

for (let count = 0; count < WARM_UP; count += 1) await timed();
process.on('message', (message) => {
  void timesOf(message as WritesQuestion);
});
process.once('disconnect', () => process.exit());
process.send?.({});
