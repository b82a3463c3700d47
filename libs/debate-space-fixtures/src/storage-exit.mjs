// A process that ends while its lmdb storage works: `exit` or `throw` under full load, or while it `open`s or `close`s.
import { setTimeout as pause } from 'node:timers/promises';
import { lmdbStorage } from 'durable-jobs/lmdb';

const [path, how, afterMs] = process.argv.slice(2);
const context = { namespace: 'app', families: ['job', 'due', 'done'], contained: (work) => work() };
const open = () => lmdbStorage({ path }).open(context);
const values = (rows) => new Map(Object.entries(rows));

async function lane(storage, name) {
  for (let n = 0; ; n += 1) {
    const [job, due, lease, done] = ['job:', 'due:', 'due:~', 'done:'].map(
      (prefix) => `${prefix}${name}-${n}`,
    );
    await storage.commit(values({ [job]: undefined }), values({ [job]: 'x'.repeat(400), [due]: '1' }));
    await storage.commit(values({ [due]: '1' }), values({ [due]: undefined, [lease]: '1' }));
    await storage.commit(
      values({ [lease]: '1', [job]: 'x'.repeat(400) }),
      values({ [lease]: undefined, [job]: undefined, [done]: 'x'.repeat(100) }),
    );
  }
}

function end() {
  process.stdout.write(`${Date.now()}\n`);
  if (how.startsWith('throw')) throw new Error('The host has failed');
  process.exit(3);
}

const storage = await open();
if (how.endsWith('open')) {
  void open();
  void lmdbStorage({ path }).open({ ...context, namespace: 'other' });
}
for (let n = 0; n < 8; n += 1) lane(storage, `${process.pid}-${n}`).catch(() => undefined);
await pause(Number(afterMs));
if (how.endsWith('close')) void storage.close();
end();
