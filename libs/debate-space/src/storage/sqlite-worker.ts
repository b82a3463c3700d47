import { statSync } from 'node:fs';
import { parentPort, receiveMessageOnPort, workerData, type MessagePort } from 'node:worker_threads';
import { StorageError } from '../errors.js';
import type { Query } from './database.js';
import { migrate } from './migration.js';
import { probeOperations } from './probe.js';
import { TABLES } from './schema.js';
import { SqlStorage } from './sql-storage.js';
import {
  compact,
  emptyWal,
  EXITING,
  openDriver,
  RESTING,
  sqliteDatabase,
  sqliteError,
  WORKING,
  type SqliteDriver,
} from './sqlite-file.js';
import type { Answer, Call, Message, ThreadData } from './sqlite.js';

/*
 * The thread that has the file. All calls that have come while it wrote, or waited for another process to write, are one
 * commit, and so one wait for the disk; each of them is done as a whole or not at all.
 */

const MAX_CALLS = 200;
const COMPACT_MS = 60 * 60_000;

/** The calls that have come and are not withdrawn. */
class Inbox {
  readonly #calls = new Map<number, Call>();
  isClosing = false;

  constructor(private readonly port: MessagePort) {}

  get isEmpty(): boolean {
    this.#receive();
    return this.#calls.size === 0;
  }

  put(message: Message): void {
    if (message === 'close') this.isClosing = true;
    else if ('withdrawn' in message) this.#calls.delete(message.withdrawn);
    else this.#calls.set(message.id, message);
  }

  take(): readonly Call[] {
    this.#receive();
    const some = [...this.#calls.values()].slice(0, MAX_CALLS);
    for (const { id } of some) this.#calls.delete(id);
    return some;
  }

  #receive(): void {
    for (let next; (next = receiveMessageOnPort(this.port));)
      this.put((next as { readonly message: Message }).message);
  }
}

/** In the transaction of the first call. */
async function prepare(driver: SqliteDriver): Promise<void> {
  const database = sqliteDatabase(driver);
  const names = TABLES.map(() => '?').join(', ');
  const text = `SELECT COUNT(*) AS tables FROM sqlite_master WHERE type = 'table' AND name IN (${names})`;
  const found = async (query: Query): Promise<number> => Number((await query(text, TABLES)).rows[0]?.tables);
  await migrate({ dialect: 'sqlite', found, locked: (work) => work(database.query) }, database.query, true);
  driver.exec('SAVEPOINT probe');
  await probeOperations(database);
  driver.exec('ROLLBACK TO probe; RELEASE probe');
}

function serve(port: MessagePort, { path, state }: ThreadData): void {
  process.removeAllListeners('warning'); // of this thread: Node.js 22 would print that its SQLite is experimental
  const inbox = new Inbox(port);
  const file = new SqliteFile(path);
  let isWorking = false;
  const work = async (): Promise<void> => {
    isWorking = true;
    while (!inbox.isEmpty) {
      if (Atomics.compareExchange(state, 0, RESTING, WORKING) === EXITING) Atomics.wait(state, 0, EXITING);
      const { calls, answers } = await file.work(inbox);
      port.postMessage(answers);
      const pruned = calls.filter(({ method }) => method === 'prune').map(({ id }) => id);
      if (answers.some(({ id, value }) => value === false && pruned.includes(id))) file.tidy();
      Atomics.store(state, 0, RESTING);
      Atomics.notify(state, 0);
    }
    isWorking = false;
    if (!inbox.isClosing) return;
    file.close();
    port.close(); // which ends the thread
  };
  port.on('message', (message: Message) => {
    inbox.put(message);
    if (!isWorking) void work();
  });
}

/** The file, which the first call opens. */
class SqliteFile {
  readonly #storages = new Map<string, SqlStorage>();
  #driver: SqliteDriver | undefined;
  #inodes: string | undefined;
  #compactedAt = -Infinity;

  constructor(private readonly path: string) {}

  /** Takes the calls when the file is ours: until then they may be withdrawn, and more of them may come. */
  async work(
    inbox: Inbox,
  ): Promise<{ readonly calls: readonly Call[]; readonly answers: readonly Answer[] }> {
    const answers: Answer[] = [];
    let calls: readonly Call[] | undefined;
    try {
      const driver = (this.#driver ??= await openDriver(this.path));
      // IMMEDIATE: a transaction that reads first and writes then would fail at once while another process writes.
      driver.exec('BEGIN IMMEDIATE');
      calls = inbox.take();
      for (const call of calls) answers.push(await this.#answerTo(driver, call));
      driver.exec('COMMIT');
      this.#checkPlace();
      return { calls, answers };
    } catch (error) {
      this.#undo('ROLLBACK');
      calls ??= inbox.take();
      return { calls, answers: calls.map((call) => this.#failed(call, error)) };
    }
  }

  /** Removes what is left of rows that were emptied or removed. */
  tidy(): void {
    if (!this.#driver) return;
    try {
      const now = performance.now();
      if (now - this.#compactedAt > COMPACT_MS) {
        compact(this.#driver);
        this.#compactedAt = now;
      }
      emptyWal(this.#driver);
    } catch {
      // Another process reads or writes: the next time will do.
    }
  }

  close(): void {
    this.#driver?.close();
  }

  /** @throws what failed, when SQLite has undone all calls because of it */
  async #answerTo(driver: SqliteDriver, call: Call): Promise<Answer> {
    driver.exec('SAVEPOINT one');
    try {
      const value = await this.#valueOf(driver, call);
      driver.exec('RELEASE one');
      return { id: call.id, value };
    } catch (error) {
      if (!this.#undo('ROLLBACK TO one; RELEASE one')) throw error;
      return this.#failed(call, error);
    }
  }

  async #valueOf(driver: SqliteDriver, { application, method, args }: Call): Promise<unknown> {
    const known = this.#storages.get(application);
    const storage = known ?? new SqlStorage(sqliteDatabase(driver), application);
    if (!known || method === 'open') {
      await prepare(driver);
      await storage.open();
      this.#storages.set(application, storage);
    }
    const operations = storage as unknown as Record<string, (...all: readonly unknown[]) => Promise<unknown>>;
    return operations[method]?.(...args);
  }

  /**
   * The last commit is lost if the file or its WAL are no longer those that were opened: somebody has moved them, or
   * has dropped the locks by opening the file in this process.
   */
  #checkPlace(): void {
    const inodes = [this.path, `${this.path}-wal`].map(
      (file) => statSync(file, { bigint: true, throwIfNoEntry: false })?.ino,
    );
    this.#inodes ??= inodes.join();
    if (this.#inodes !== inodes.join())
      throw new StorageError(
        `${this.path} or its -wal file was removed or replaced while it was open`,
        'restart the app, and do not open, copy or restore the file in a process in which the app runs',
      );
  }

  #failed({ id, method }: Call, error: unknown): Answer {
    const failed = method === 'open' ? `sqliteStorage() cannot use ${this.path}` : 'SQLite failed';
    const { problem, hint, unreachable } = sqliteError(failed, error);
    return { id, failed: { problem, hint, unreachable } };
  }

  /** @returns `false` when SQLite has undone the transaction already */
  #undo(text: string): boolean {
    try {
      this.#driver?.exec(text);
      return true;
    } catch {
      return false;
    }
  }
}

if (parentPort) serve(parentPort, workerData as ThreadData);
