import { setTimeout as sleep } from 'node:timers/promises';
import { StorageError } from '../errors.js';
import type { Database, Query } from './database.js';
import { isConflict, noAnswer, serverError } from './server-errors.js';
import type { HostTransaction } from './storage.js';

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
  /** Puts the connection back, or cuts it. */
  end(how: 'release' | 'cut'): void;
}

/**
 * A late connection is cut: its statement may never end, and the pool is the host's.
 * @param begin the statements that begin a transaction
 */
export function throughPool(
  connect: () => Promise<PooledConnection>,
  begin: readonly string[],
): HostConnection {
  const withOne = async <T>(
    late: AbortSignal,
    work: (query: HostQuery) => Promise<T>,
    afterFailure: 'release' | 'cut',
  ): Promise<T> => {
    const connection = await connect();
    let isHeld = true;
    const end = (how: 'release' | 'cut'): void => {
      if (isHeld) connection.end(how);
      isHeld = false;
    };
    late.addEventListener('abort', () => {
      end('cut');
    });
    try {
      late.throwIfAborted();
      const result = await work(connection.query);
      end('release');
      return result;
    } catch (error) {
      end(afterFailure);
      throw error;
    }
  };
  return {
    query: (text, values, late) => withOne(late, (query) => query(text, values), 'release'),
    transaction: (work, late) => {
      const whole = async (query: HostQuery) => {
        for (const statement of begin) await query(statement, []);
        const result = await work(query);
        await query('COMMIT', []);
        return result;
      };
      return withOne(late, whole, 'cut'); // which rolls back
    },
  };
}

/** Hands the functions of an ORM nothing that they do not know. */
export function throughFunctions(functions: HostFunctions): HostConnection {
  return {
    query: (text, values) => functions.query(text, values),
    transaction: (work) => functions.transaction(work),
  };
}

/** How long one call may take, in milliseconds. */
export const CALL_TIMEOUT_MS = 5_000;
const MAX_REPEATS = 5;
const MAX_REPEAT_DELAY_MS = 50;

/**
 * Calls through a connection of the host's, which may keep statements back for as long as the server is away: each call has
 * a time limit. Errors name a code and nothing more, because messages of drivers repeat what was sent.
 */
export class ServerCalls {
  readonly #open = new Set<Promise<unknown>>();
  #isClosed = false;

  /** @param server its name, for messages */
  constructor(
    private readonly server: string,
    private readonly timeoutMs = CALL_TIMEOUT_MS,
  ) {}

  /**
   * Repeats `work` after a deadlock.
   * @param work sends nothing more once `late` is aborted
   * @throws {@link StorageError} when `work` fails or takes too long, or after {@link close}
   */
  async run<T>(work: (late: AbortSignal) => Promise<T>, timeoutMs = this.timeoutMs): Promise<T> {
    if (this.#isClosed) throw new StorageError('The storage is closed');
    const call = this.#inTime(work, timeoutMs);
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

  #inTime<T>(work: (late: AbortSignal) => Promise<T>, timeoutMs: number): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = new AbortController();
      const timer = setTimeout(() => {
        late.abort();
        reject(noAnswer(this.server));
      }, timeoutMs).unref();
      const fail = (error: unknown): void => {
        reject(serverError(this.server, error));
      };
      void this.#repeated(work, late.signal)
        .then(resolve, fail)
        .finally(() => {
          clearTimeout(timer);
        });
    });
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

type Statements = Pick<Database, 'query' | 'transaction' | 'close'>;

/** @param queryOf makes the statements of the dialect, and reads its results */
export function onServer(
  connection: HostConnection,
  calls: ServerCalls,
  queryOf: (run: HostQuery) => Query,
): Statements {
  return {
    query: (text, values) =>
      calls.run((late) => queryOf((...statement) => connection.query(...statement, late))(text, values)),
    transaction: (work) =>
      calls.run((late) => {
        const inside = (run: HostQuery): Query =>
          queryOf(async (text, values) => {
            late.throwIfAborted();
            return run(text, values);
          });
        return connection.transaction((run) => work(inside(run)), late);
      }),
    close: () => calls.close(),
  };
}

/** In a transaction of the host's, its errors and its time limits are the host's. */
export function inHostTransaction(host: HostTransaction, queryOf: (run: HostQuery) => Query): Statements {
  const query = queryOf((text, values) => host.query(text, values));
  return { query, transaction: (work) => work(query), close: () => Promise.resolve() };
}

/** Rejects as the first write would: a table is missing, the role has no right, the server is read-only. Changes nothing. */
export async function checkRights(query: Query, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    await query(`INSERT INTO ${table} SELECT * FROM ${table} WHERE 1 = 0`);
    await query(`UPDATE ${table} SET id = id WHERE 1 = 0`);
    await query(`DELETE FROM ${table} WHERE 1 = 0`);
  }
}
