import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads';
import type { Query } from './database.js';
import { migrate } from './migration.js';
import { probeOperations } from './probe.js';
import { TABLES } from './schema.js';
import { SqlStorage } from './sql-storage.js';
import { openDriver, prepareFolder, sqliteDatabase, sqliteError, type SqliteDriver } from './sqlite-file.js';
import type { Answer, Call, Message, Opened, Opening } from './sqlite.js';

/*
 * The thread that has the file. All calls that have come while it wrote are one commit, and so one wait for the disk; each
 * of them is done as a whole or not at all.
 */

const MAX_CALLS = 200;

if (parentPort) await open(parentPort, workerData as Opening);

async function open(port: MessagePort, { path, application }: Opening): Promise<void> {
  try {
    const { key, warnings } = prepareFolder(path);
    process.removeAllListeners('warning'); // of this thread: Node.js 22 would print that its SQLite is experimental
    const driver = await openDriver(path);
    const database = sqliteDatabase(driver);
    const storage = new SqlStorage(database, application);
    // IMMEDIATE: a transaction that reads first and writes then would fail at once while another process writes.
    driver.exec('BEGIN IMMEDIATE');
    await migrate({ dialect: 'sqlite', found, locked: (work) => work(database.query) }, database.query, true);
    driver.exec('SAVEPOINT probe');
    await probeOperations(database);
    driver.exec('ROLLBACK TO probe; RELEASE probe');
    await storage.open();
    driver.exec('COMMIT');
    serve(port, driver, storage);
    port.postMessage({ key, warnings } satisfies Opened);
  } catch (error) {
    const { problem, hint } = sqliteError(`sqliteStorage() cannot use ${path}`, error);
    port.postMessage({ failed: { problem, hint } } satisfies Opened);
  }
}

async function found(query: Query): Promise<number> {
  const names = TABLES.map(() => '?').join(', ');
  const text = `SELECT COUNT(*) AS tables FROM sqlite_master WHERE type = 'table' AND name IN (${names})`;
  return Number((await query(text, TABLES)).rows[0]?.tables);
}

function serve(port: MessagePort, driver: SqliteDriver, storage: SqlStorage): void {
  let last = Promise.resolve();
  port.on('message', (first: Message) => {
    const messages = [first];
    for (let next; messages.length < MAX_CALLS && (next = receiveMessageOnPort(port));)
      messages.push((next as { readonly message: Message }).message);
    last = last.then(async () => {
      const calls = messages.filter((message) => message !== 'close');
      if (calls.length > 0) port.postMessage(await commit(driver, storage, calls));
      if (calls.length === messages.length) return;
      await storage.close();
      port.close(); // which ends the thread
    });
  });
}

async function commit(
  driver: SqliteDriver,
  storage: SqlStorage,
  calls: readonly Call[],
): Promise<readonly Answer[]> {
  const answers: Answer[] = [];
  try {
    driver.exec('BEGIN IMMEDIATE');
    for (const call of calls) answers.push(await answerTo(driver, storage, call));
    driver.exec('COMMIT');
    return answers;
  } catch (error) {
    undo(driver, 'ROLLBACK');
    const { problem, hint } = sqliteError('SQLite failed', error);
    return calls.map(({ id }) => ({ id, failed: { problem, hint } }));
  }
}

/** @throws what failed, when SQLite has undone all calls because of it */
async function answerTo(
  driver: SqliteDriver,
  storage: SqlStorage,
  { id, method, args }: Call,
): Promise<Answer> {
  driver.exec('SAVEPOINT one');
  try {
    const operations = storage as unknown as Record<string, (...all: readonly unknown[]) => Promise<unknown>>;
    const value = await operations[method]?.(...args);
    driver.exec('RELEASE one');
    return { id, value };
  } catch (error) {
    if (!undo(driver, 'ROLLBACK TO one; RELEASE one')) throw error;
    const { problem, hint } = sqliteError('SQLite failed', error);
    return { id, failed: { problem, hint } };
  }
}

/** @returns `false` when SQLite has undone the transaction already */
function undo(driver: SqliteDriver, text: string): boolean {
  try {
    driver.exec(text);
    return true;
  } catch {
    return false;
  }
}
