import { once } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { withTimeout } from '../async/with-timeout.js';
import { StorageError } from '../errors.js';
import { MIGRATIONS } from './schema.js';
import { EXITING, prepareFile, RESTING, sqliteError, WORKING } from './sqlite-file.js';
import { SqlStorage } from './sql-storage.js';
import type { OpenStorage, StorageEngine } from './engine.js';
import type { Storage } from './storage.js';

/** Where the storage keeps its file. */
export interface SqliteStorageOptions {
  /**
   * A file on a disk of this machine, not of a network; several modules, processes and applications may share it. The file
   * and its folder (0700) are made when they are missing. `PATH.key` (0600) has the key that encrypts unless the option
   * `storageKey` is given, and is the last key beside it: a backup needs both. No other code of the process that runs the
   * app may open the file, not even to copy it: that drops the locks of SQLite. Other processes may read it.
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
export function sqliteStorage(options: SqliteStorageOptions): StorageEngine {
  return {
    name: 'sqlite',
    durable: true,
    guarantee: 'what is stored survives a crash, kill -9 and power loss of this machine',
    open: (application) => open(options, application),
  };
}

/** The data that a thread starts with. `state` has one element. */
export interface ThreadData {
  readonly path: string;
  readonly state: Int32Array;
}
/** The parts of a `StorageError`, which is not copied from thread to thread. */
type Failed = Pick<StorageError, 'problem' | 'hint' | 'unreachable'>;
type Method = Exclude<keyof Storage, 'within' | 'close'> | 'open';
export interface Call {
  readonly id: number;
  readonly application: string;
  /** The first call of an application, and `open`, create the tables that are missing. */
  readonly method: Method;
  readonly args: readonly unknown[];
}
/** `withdrawn` is the id of a call that shall not be done if it has not begun. */
export type Message = Call | { readonly withdrawn: number } | 'close';
export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly failed?: Failed;
}

/** How long one call may take, in milliseconds. */
const CALL_TIMEOUT_MS = 5_000;
/** How long the thread may take to start, and to open and to close the file, in milliseconds. */
const OPEN_TIMEOUT_MS = 15_000;
/** How long the exit of the process waits for a commit, in milliseconds: longer than a statement waits for another process. */
const EXIT_TIMEOUT_MS = 5_000;

async function open(options: SqliteStorageOptions, application: string): Promise<OpenStorage> {
  const file = prepareFile((options as Partial<SqliteStorageOptions> | undefined)?.path);
  const threads = threadsOfProcess();
  const shared = threads.get(file.identity);
  const thread = shared ?? new SqliteThread(file.path, () => threads.delete(file.identity));
  threads.set(file.identity, thread);
  const { call, close } = thread.join(application);
  try {
    await call('open', []);
  } catch (error) {
    if (!(error instanceof StorageError && error.unreachable)) {
      await close();
      throw error;
    } // else another program has the file locked: the first call that succeeds opens it
  }
  const operations = Object.getOwnPropertyNames(SqlStorage.prototype).map((method) => [
    method,
    (...args: readonly unknown[]) => call(method as Method, args),
  ]);
  const storage = { ...Object.fromEntries(operations), close } as Storage;
  return { storage, place: file.path, warnings: shared ? [] : file.warnings, key: file.key };
}

/**
 * The threads by their files. POSIX locks belong to a process and a file, so all modules of a process share one connection:
 * copies of this package, too, whose operations are the same.
 */
function threadsOfProcess(): Map<string, SqliteThread> {
  const protocol = [MIGRATIONS.length, ...Object.getOwnPropertyNames(SqlStorage.prototype)].join();
  const holder = globalThis as unknown as Record<symbol, Map<string, SqliteThread> | undefined>;
  return (holder[Symbol.for(`nestjs-debate-space/sqlite ${protocol}`)] ??= new Map<string, SqliteThread>());
}

/** Where this file is. `import.meta` does not compile under jest in CommonJS mode. */
function here(): URL {
  const before = {
    prepareStackTrace: Reflect.get(Error, 'prepareStackTrace') as unknown,
    stackTraceLimit: Error.stackTraceLimit,
  };
  try {
    Error.stackTraceLimit = 1;
    Error.prepareStackTrace = (_error, [site]) => site?.getFileName();
    const file = String(new Error().stack);
    return file.startsWith('file:') ? new URL(file) : pathToFileURL(file);
  } finally {
    Object.assign(Error, before);
  }
}

function startWorker(workerData: ThreadData): Worker {
  const { href } = here();
  const extension = href.slice(href.lastIndexOf('.'));
  const isSource = extension === '.ts'; // which needs the loader of the host's thread
  try {
    return new Worker(new URL(`./sqlite-worker${extension}`, href), {
      name: 'debate-space-sqlite',
      workerData,
      // Modules that a flag or NODE_OPTIONS preloads are for the thread of the host.
      ...(!isSource && { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } }),
    });
  } catch (error) {
    throw sqliteError('The thread of SQLite does not start', error);
  }
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: StorageError): void;
  /** Nobody withdraws the call any longer. */
  keep(): void;
}

/** The access of one module to the thread of its file. */
interface Member {
  readonly call: (method: Method, args: readonly unknown[]) => Promise<unknown>;
  /** Resolves when earlier calls are answered. The last member ends the thread. */
  readonly close: () => Promise<void>;
}

/** Keeps the process alive only while calls wait for their answers. */
class SqliteThread {
  readonly #worker: Worker;
  readonly #state = new Int32Array(new SharedArrayBuffer(4));
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #members = 0;
  #hasAnswered = false;
  /** Why it takes no calls any longer. */
  #end: StorageError | undefined;

  /** @param onEnd called when it takes no calls any longer */
  constructor(
    path: string,
    private readonly onEnd: () => void,
  ) {
    this.#worker = startWorker({ path, state: this.#state });
    process.on('exit', this.#beforeExit);
    this.#worker.on('message', (answers: readonly Answer[]) => {
      this.#hasAnswered = true;
      for (const answer of answers) this.#settle(answer);
    });
    this.#worker.on('error', (error: NodeJS.ErrnoException) => {
      this.#fail(error.code ?? error.name);
    });
    this.#worker.on('exit', (code) => {
      process.off('exit', this.#beforeExit);
      this.#fail(`exit code ${code}`);
    });
    this.#worker.unref();
  }

  join(application: string): Member {
    this.#members += 1;
    let isOpen = true;
    return {
      call: async (method, args) => {
        if (!isOpen) throw new StorageError('The storage is closed');
        return this.#call(application, method, args);
      },
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        this.#members -= 1;
        if (this.#members === 0) await this.#close();
        else await this.#call(application, 'birth', []).catch(() => undefined); // answered after all others
      },
    };
  }

  #call(application: string, method: Method, args: readonly unknown[]): Promise<unknown> {
    const signal = args.find((arg) => arg instanceof AbortSignal);
    return new Promise((resolve, reject) => {
      if (this.#end) throw this.#end;
      const id = (this.#lastId += 1);
      const withdraw = (): void => {
        const hint = 'check the disk, and end other programs that have a transaction open on the file';
        this.#settle({ id, failed: { problem: 'SQLite failed (no answer)', hint, unreachable: true } });
        this.#worker.postMessage({ withdrawn: id } satisfies Message);
      };
      const timer = setTimeout(withdraw, method === 'open' ? OPEN_TIMEOUT_MS : CALL_TIMEOUT_MS).unref();
      signal?.addEventListener('abort', withdraw);
      const keep = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', withdraw);
      };
      this.#pending.set(id, { resolve, reject, keep });
      this.#worker.ref();
      const sent = args.filter((arg) => signal === undefined || arg !== signal);
      this.#worker.postMessage({ id, application, method, args: sent } satisfies Message);
    });
  }

  async #close(): Promise<void> {
    if (this.#end) return;
    this.#end = new StorageError('The storage is closed');
    this.onEnd();
    const ended = once(this.#worker, 'exit');
    this.#worker.ref();
    this.#worker.postMessage('close' satisfies Message);
    await withTimeout(ended, OPEN_TIMEOUT_MS, undefined);
    this.#worker.unref();
  }

  #fail(cause: string): void {
    if (!this.#end) this.onEnd();
    this.#end ??= this.#hasAnswered
      ? new StorageError(`The thread of SQLite has ended (${cause})`, 'restart the app')
      : new StorageError(
          `The thread of SQLite does not start (${cause})`,
          'if the app is bundled, leave nestjs-debate-space out of the bundle',
        );
    for (const id of this.#pending.keys()) this.#settle({ id, failed: this.#end });
  }

  /** libsql aborts a process that ends while a thread is in one of its calls: the thread ends its commit, and begins no other. */
  readonly #beforeExit = (): void => {
    const until = performance.now() + EXIT_TIMEOUT_MS;
    while (Atomics.compareExchange(this.#state, 0, RESTING, EXITING) === WORKING && performance.now() < until)
      Atomics.wait(this.#state, 0, WORKING, EXIT_TIMEOUT_MS);
  };

  #settle({ id, value, failed }: Answer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.keep();
    if (failed) pending?.reject(new StorageError(failed.problem, failed.hint, failed));
    else pending?.resolve(value);
    if (this.#pending.size === 0 && !this.#end) this.#worker.unref();
  }
}
