// A process that opens an lmdb storage and adds so many to a number, one at a time. It says what its clock shows.
import { lmdbStorage } from 'durable-jobs/lmdb';

const [path, times] = process.argv.slice(2);
const context = { namespace: 'app', families: ['a'], contained: (work) => work() };
const storage = await lmdbStorage({ path }).open(context);
for (let made = 0; made < Number(times);) {
  const [before] = storage.get(['a:count']);
  const after = String(Number(before ?? 0) + 1);
  if (await storage.commit(new Map([['a:count', before]]), new Map([['a:count', after]]))) made += 1;
}
console.log(JSON.stringify({ now: storage.now(), key: storage.key }));
await storage.close();
