// A process that opens an lmdb storage and prints why it cannot.
import { lmdbStorage } from 'durable-jobs/lmdb';

const [path] = process.argv.slice(2);
const context = { namespace: 'app', families: ['a', 'b'], contained: (work) => work() };
const opened = await lmdbStorage({ path })
  .open(context)
  .then(
    (storage) => storage.range('a:', 'a;', { limit: 10_000 }),
    ({ name, message }) => ({ name, message }),
  );
console.log(JSON.stringify(opened));
