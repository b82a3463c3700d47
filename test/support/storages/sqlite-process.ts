// A process with a storage in SQLite, which it does not close: PATH HOW.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { StorageError } from '../../../libs/debate-space/src/errors.js';
import { sqliteStorage } from '../../../libs/debate-space/src/storage/sqlite.js';

const [path = '', how = ''] = process.argv.slice(2);
const engine = sqliteStorage({ path });
const { storage, key } = await engine.open('app');
const add = (details = 'logout'): Promise<void> =>
  storage.addLogouts([
    { id: `${String(Date.now()).padStart(15, '0')}-${randomUUID()}`, subject: 'ada', sealed: 'x', details },
  ]);

/** Adds and finishes logouts until the process ends. */
async function work(): Promise<never> {
  for (;;) {
    await add();
    const { claims } = await storage.claim('logout', 4);
    await Promise.all(claims.map((claim) => storage.finishLogout(claim, 1)));
  }
}

/** Adds until a file may not grow any further, and once more without the limit. @returns how many were added, and the error */
async function fillDisk(): Promise<string> {
  for (let added = 0; ; added += 1) {
    try {
      await add('x'.repeat(10_000));
    } catch (error) {
      execFileSync('prlimit', ['--pid', `${process.pid}`, '--fsize=unlimited']);
      await add();
      return `${added + 1} ${error instanceof StorageError ? error.message : 'another error'}`;
    }
  }
}

switch (how) {
  case 'open':
  case 'add':
    if (how === 'add') await add();
    console.log(key);
    break;
  case 'die':
    await add();
    process.kill(process.pid, 'SIGKILL');
    break;
  case 'share': // with another module, and with a process that opens the file and closes it
    await (await engine.open('other')).storage.addLogouts([]);
    await add();
    execFileSync(process.execPath, [...process.execArgv, process.argv[1] ?? '', path, 'close']);
    for (let more = 0; more < 3; more += 1) await add();
    process.kill(process.pid, 'SIGKILL');
    break;
  case 'close':
    await storage.close();
    break;
  case 'fill':
    console.log(await fillDisk());
    break;
  case 'exit':
  case 'exit-open':
  case 'exit-close':
  case 'throw':
    for (let n = 0; n < 8; n += 1) void work().catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 200));
    if (how === 'exit-open') void engine.open('another');
    if (how === 'exit-close') void storage.close();
    if (how === 'throw') throw new Error('The host has failed');
    process.exit(3);
}
