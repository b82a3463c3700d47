// A process whose disk is full for a while: what its lmdb storage takes, refuses and finishes. The limit of a process on
// the size of its files does what a full disk does, and needs no disk; it would hit a test runner's own files as well.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { lmdbStorage } from 'durable-jobs/lmdb';

const [path] = process.argv.slice(2);
const limit = (bytes) => execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);
const storage = await lmdbStorage({ path }).open({
  namespace: 'app',
  families: ['record', 'due', 'done'],
  contained: (work) => work(),
});
const entry = 'x'.repeat(400);
const idOf = (n) => String(n).padStart(6, '0');
const add = (id) =>
  storage.commit(
    new Map([[`record:${id}`, undefined]]),
    new Map([
      [`record:${id}`, entry],
      [`due:${id}`, ''],
    ]),
  );
const finish = (id) =>
  storage.commit(
    new Map([[`due:${id}`, '']]),
    new Map([
      [`record:${id}`, undefined],
      [`due:${id}`, undefined],
      [`done:${id}`, 'x'.repeat(100)],
    ]),
  );
const some = (n, work) => Promise.allSettled(Array.from({ length: 50 }, (_, m) => work(idOf(n + m))));

limit(statSync(join(path, 'app', 'data.mdb')).size + 4_000_000);
let refused;
let taken = 0;
for (let n = 0; refused === undefined && n < 50_000; n += 50) {
  const results = await some(n, add);
  taken += results.filter(({ status }) => status === 'fulfilled').length;
  refused = results.find(({ status }) => status === 'rejected')?.reason;
}
const large = new Map(Array.from({ length: 5_000 }, (_, n) => [`record:large${n}`, 'x'.repeat(300)]));
const refusedLarge = await storage.commit(new Map(), large).then(
  () => undefined,
  (error) => error,
);
const kept = storage.count('record');
for (;;) {
  const rows = storage.range('due:', 'due;', { limit: 50 });
  if (rows.length === 0) break;
  await Promise.all(rows.map(([key]) => finish(key.slice(4))));
}
const done = storage.count('done');
limit('unlimited');
const later = (await some(100_000, add)).filter(({ value }) => value === true).length;
const isLargeMade = await storage.commit(new Map(), large);
await storage.close();
const what = ({ name, message } = {}) => ({ name, message });
console.log(
  JSON.stringify({
    refused: what(refused),
    refusedLarge: what(refusedLarge),
    taken,
    kept,
    done,
    later,
    isLargeMade,
  }),
);
