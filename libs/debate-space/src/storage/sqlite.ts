import { once } from 'node:events';
import { resolve as absolute } from 'node:path';
import { Worker } from 'node:worker_threads';
import { withTimeout } from '../async/with-timeout.js';
import { StorageError } from '../errors.js';
import { SqlStorage } from './sql-storage.js';
import type { OpenStorage, Storage, StorageEngine, StorageWarning } from './storage.js';

/** Where the storage keeps its file. */
export interface SqliteStorageOptions {
  /**
   * A file on a disk of this machine, not of a network; several processes and applications may share it. The file and its
   * folder (0700) are made when they are missing. `PATH.key` (0600) has the key that encrypts unless the option
   * `storageKey` is given, and is the last key beside it: a backup needs both.
   */
  readonly path: string;
}

/**
 * Keeps everything in a file of SQLite: what is stored survives a crash, kill -9 and power loss. Needs Node.js 22.13 or the
 * package `libsql`. A thread of its own writes, so that the event loop does not wait for the disk.
 *
 * @example
 * storage: sqliteStorage({ path: './data/debate-space.db' })
 */
export function sqliteStorage({ path }: SqliteStorageOptions): StorageEngine {
  return {
    name: 'sqlite',
    durable: true,
    guarantee: 'what is stored survives a crash, kill -9 and power loss of this machine',
    open: (application) => open({ path: absolute(path), application }),
  };
}

/** What the thread is to open. */
export interface Opening {
  readonly path: string;
  readonly application: string;
}
/** The parts of a `StorageError`, which is not copied from thread to thread. */
type Failed = Pick<StorageError, 'problem' | 'hint'>;
export type Opened =
  | { readonly failed: Failed }
  | { readonly failed?: undefined; readonly key: string; readonly warnings: readonly StorageWarning[] };
type Method = Exclude<keyof Storage, 'within' | 'close'>;
export interface Call {
  readonly id: number;
  readonly method: Method;
  readonly args: readonly unknown[];
}
export type Message = Call | 'close';
export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly failed?: Failed;
}

/** How long one call may take, in milliseconds. */
const CALL_TIMEOUT_MS = 10_000;

async function open(opening: Opening): Promise<OpenStorage> {
  const { url } = import.meta;
  const extension = url.slice(url.lastIndexOf('.')); // the sources are run as they are, too
  const worker = new Worker(new URL(`./sqlite-worker${extension}`, url), {
    name: 'debate-space-sqlite',
    workerData: opening,
    ...(extension === '.js' && { execArgv: [] }), // a module of `--import` is for the thread of the host
  });
  const [opened] = (await once(worker, 'message').catch((error: unknown) => {
    throw new StorageError(
      `The thread of SQLite does not start (${codeOf(error)})`,
      'if the app is bundled, leave nestjs-debate-space out of the bundle',
    );
  })) as [Opened];
  if (opened.failed) {
    await worker.terminate();
    throw new StorageError(opened.failed.problem, opened.failed.hint);
  }
  const thread = new SqliteThread(worker);
  const operations = Object.getOwnPropertyNames(SqlStorage.prototype).map((method) => [
    method,
    (...args: readonly unknown[]) => thread.call(method as Method, args),
  ]);
  const storage = { ...Object.fromEntries(operations), close: () => thread.close() } as Storage;
  const { key, warnings } = opened;
  return { storage, place: opening.path, warnings, key };
}

function codeOf(error: unknown): string {
  const { name, code = name } = error as NodeJS.ErrnoException;
  return code;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: StorageError): void;
  readonly timer: NodeJS.Timeout;
}

/** Keeps the process alive only while calls wait for their answers. */
class SqliteThread {
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  /** Why it takes no calls any longer. */
  #end: StorageError | undefined;

  constructor(private readonly worker: Worker) {
    worker.on('message', (answers: readonly Answer[]) => {
      for (const answer of answers) this.#settle(answer);
    });
    worker.on('error', (error) => {
      this.#fail(codeOf(error));
    });
    worker.on('exit', (code) => {
      this.#fail(`exit code ${code}`);
    });
    worker.unref();
  }

  call(method: Method, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#end) throw this.#end;
      const id = (this.#lastId += 1);
      const hint = 'check the disk, and end other programs that have a transaction open on the file';
      const timer = setTimeout(() => {
        this.#settle({ id, failed: { problem: 'SQLite failed (no answer)', hint } });
      }, CALL_TIMEOUT_MS).unref();
      this.#pending.set(id, { resolve, reject, timer });
      this.worker.ref();
      this.worker.postMessage({ id, method, args } satisfies Call);
    });
  }

  async close(): Promise<void> {
    if (this.#end) return;
    this.#end = new StorageError('The storage is closed');
    const ended = once(this.worker, 'exit');
    this.worker.ref();
    this.worker.postMessage('close' satisfies Message);
    await withTimeout(ended, CALL_TIMEOUT_MS, undefined);
    this.worker.unref();
  }

  #fail(cause: string): void {
    this.#end ??= new StorageError(`The thread of SQLite has ended (${cause})`, 'restart the app');
    const { problem, hint } = this.#end;
    for (const id of this.#pending.keys()) this.#settle({ id, failed: { problem, hint } });
  }

  #settle({ id, value, failed }: Answer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    clearTimeout(pending?.timer);
    if (failed) pending?.reject(new StorageError(failed.problem, failed.hint));
    else pending?.resolve(value);
    if (this.#pending.size === 0 && !this.#end) this.worker.unref();
  }
}
