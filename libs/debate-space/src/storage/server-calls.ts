import { setTimeout as sleep } from 'node:timers/promises';
import { BootContext } from '../async/background.js';
import { StorageError } from '../errors.js';
import type { Database, Query } from './database.js';
import { isConflict, isConnectionLost, noAnswer, serverError } from './server-errors.js';

/** Runs one statement on a connection of the host's. */
export type HostQuery = (text: string, values: unknown[]) => Promise<unknown>;

/** How a storage reaches a server: through the host's pool, or its ORM. */
export interface HostConnection {
  /** @param late aborted when nobody waits for the statement any longer */
  query(text: string, values: unknown[], late: AbortSignal): Promise<unknown>;
  /** @param late aborted when nobody waits for the transaction any longer */
  transaction<T>(work: (query: HostQuery) => Promise<T>, late: AbortSignal): Promise<T>;
}

/** The connections of an ORM. */
export interface HostFunctions {
  /**
   * Runs one statement with `$1`, `$2`, … on Postgres, or `?` on MySQL. Returns its rows as an array, or as `rows` of an
   * object. On MySQL, a change returns its header with `affectedRows`, or the number of affected rows. `[rows, fields]` of
   * mysql2 and `[rows, count]` of TypeORM will do.
   */
  query(text: string, values: unknown[]): Promise<unknown>;
  /**
   * Runs `work` in one transaction, which is rolled back when `work` rejects. On MySQL, fewer transactions are repeated
   * after deadlocks with the isolation level READ COMMITTED.
   */
  transaction<T>(work: (query: HostQuery) => Promise<T>): Promise<T>;
}

/** Options of each server. */
export interface ServerOptions {
  /** Whether to create tables that are missing. With `false`, run `npx debate-space storage migration`. @defaultValue `true` */
  readonly migrate?: boolean;
  /** How long one call may take before it rejects with an unknown outcome, in milliseconds. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

/** A connection of the host's pool. */
export interface PooledConnection {
  readonly query: HostQuery;
  /** Puts the connection back, or closes it. */
  end(how: 'release' | 'close'): void;
}

/** A connection on which nothing has come for a minute may lead nowhere, as after a failover. */
const LOST_MS = 60_000;

/**
 * A connection that broke, or leads to a server that became read-only, is closed. A late one is not: its statement would
 * live on at the server, and the next call would open one more. One a minute is given up all the same, then one in two
 * minutes, in four, until a call succeeds.
 * @param begin the statements that begin a transaction
 */
export function throughPool(
  connect: () => Promise<PooledConnection>,
  begin: readonly string[],
): HostConnection {
  let lostMs = LOST_MS;
  let lastLost = 0;
  const withOne = async <T>(late: AbortSignal, work: (query: HostQuery) => Promise<T>): Promise<T> => {
    const connection = await connect();
    let isHeld = true;
    const end = (how: 'release' | 'close'): void => {
      if (isHeld) connection.end(how);
      isHeld = false;
    };
    const giveUp = (): void => {
      if (!isHeld) return;
      const isNext = Date.now() - lastLost >= lostMs;
      if (!isNext) return void setTimeout(giveUp, lostMs).unref();
      lastLost = Date.now();
      lostMs *= 2;
      end('close');
    };
    late.addEventListener('abort', () => void setTimeout(giveUp, LOST_MS).unref());
    try {
      late.throwIfAborted();
      const result = await work(connection.query);
      end('release');
      lostMs = LOST_MS;
      return result;
    } catch (error) {
      end(isConnectionLost(error) ? 'close' : 'release');
      throw error;
    }
  };
  return {
    query: (text, values, late) => withOne(late, (query) => query(text, values)),
    transaction: (work, late) =>
      withOne(late, async (query) => {
        for (const statement of begin) await query(statement, []);
        try {
          const result = await work(query);
          await query('COMMIT', []);
          return result;
        } catch (error) {
          if (!isConnectionLost(error)) await query('ROLLBACK', []);
          throw error;
        }
      }),
  };
}

/** Hands the functions of an ORM nothing that they do not know. */
export function throughFunctions(functions: HostFunctions): HostConnection {
  const { query, transaction } = functions as Partial<HostFunctions>;
  if (typeof query !== 'function' || typeof transaction !== 'function')
    throw new StorageError('The storage has no connection', 'give the option pool, or query and transaction');
  return {
    query: (text, values) => functions.query(text, values),
    transaction: (work) => functions.transaction(work),
  };
}

/** How long one call may take, in milliseconds. */
export const CALL_TIMEOUT_MS = 5_000;
/** How many calls are at the server at once: the rest of the pool is the host's. */
const MAX_PLACES = 5;
const MAX_REPEATS = 5;
const MAX_REPEAT_DELAY_MS = 50;

/**
 * Calls through a connection of the host's, which may keep statements back for as long as the server is away. Each call has
 * a time limit, and takes one of a few places until the driver settles it, which may be much later: while no place is free,
 * nothing more is sent. A pool of four has two places. Calls run in the async context of the boot.
 */
export class ServerCalls {
  readonly #context = new BootContext();
  readonly #open = new Set<Promise<unknown>>();
  readonly #waiting = new Set<() => void>();
  readonly #places: number;
  /** Places of calls that somebody waits for. */
  #taken = 0;
  /** Places of calls that took too long, and are still at the server. */
  #late = 0;
  #isClosed = false;

  /**
   * @param server its name, for messages
   * @param connections how many the host's pool has at most, if that is known
   */
  constructor(
    private readonly server: string,
    private readonly timeoutMs = CALL_TIMEOUT_MS,
    connections: unknown = Infinity,
  ) {
    const half = Math.ceil(Number(connections) / 2);
    this.#places = half >= 1 ? Math.min(MAX_PLACES, half) : MAX_PLACES;
  }

  /**
   * Repeats `work` after a deadlock.
   * @param work sends nothing more once `late` is aborted
   * @throws {@link StorageError} when `work` fails or takes too long, or after {@link close}
   */
  async run<T>(work: (late: AbortSignal) => Promise<T>, timeoutMs = this.timeoutMs): Promise<T> {
    if (this.#isClosed) throw new StorageError('The storage is closed');
    const call = this.#context.run(() => this.#limited(work, timeoutMs));
    this.#open.add(call);
    try {
      return await call;
    } finally {
      this.#open.delete(call);
    }
  }

  /** Waits for open calls, which takes no longer than their time limit. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled(this.#open);
  }

  #limited<T>(work: (late: AbortSignal) => Promise<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#late === this.#places) {
        reject(noAnswer(this.server));
        return;
      }
      const late = new AbortController();
      const begin = (): void => {
        this.#taken += 1;
        const settled = this.#repeated(work, late.signal).then(resolve, (error: unknown) => {
          reject(serverError(this.server, error));
        });
        void settled.then(() => {
          clearTimeout(timer);
          if (late.signal.aborted) this.#late -= 1;
          else this.#taken -= 1;
          this.#fill();
        });
      };
      const timer = setTimeout(() => {
        if (!this.#waiting.delete(begin)) {
          this.#taken -= 1;
          this.#late += 1;
        }
        late.abort();
        reject(noAnswer(this.server));
      }, timeoutMs).unref();
      this.#waiting.add(begin);
      this.#fill();
    });
  }

  /** Begins the calls that have waited longest, while places are free. */
  #fill(): void {
    for (const begin of this.#waiting) {
      if (this.#taken + this.#late >= this.#places) return;
      this.#waiting.delete(begin);
      begin();
    }
  }

  async #repeated<T>(work: (late: AbortSignal) => Promise<T>, late: AbortSignal): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await work(late);
      } catch (error) {
        if (!isConflict(error) || late.aborted || repeats === MAX_REPEATS) throw error;
        await sleep(Math.random() * MAX_REPEAT_DELAY_MS);
      }
    }
  }
}

export type Statements = Pick<Database, 'query' | 'transaction' | 'close'>;

/**
 * @param queryOf makes the statements of the dialect, and reads its results
 * @param first a statement at the beginning of each transaction
 */
export function onServer(
  connection: HostConnection,
  calls: ServerCalls,
  queryOf: (run: HostQuery) => Query,
  first?: string,
): Statements {
  return {
    query: (text, values) =>
      calls.run((late) => queryOf((...statement) => connection.query(...statement, late))(text, values)),
    transaction: (work) =>
      calls.run((late) =>
        connection.transaction(async (run) => {
          if (first !== undefined) await run(first, []);
          const query = queryOf(async (text, values) => {
            late.throwIfAborted();
            return run(text, values);
          });
          return work(query);
        }, late),
      ),
    close: () => calls.close(),
  };
}

/** In a transaction that somebody else began: its errors and its time limits are theirs. */
export function inTransaction(query: Query): Statements {
  return { query, transaction: (work) => work(query), close: () => Promise.resolve() };
}
