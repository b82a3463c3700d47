import { setTimeout as sleep } from 'node:timers/promises';
import { StorageError } from '../errors.js';
import type { Database, Query } from './database.js';
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

/** By the codes of Postgres, MySQL and MariaDB: the failures that operators meet most. */
const FAILURES = failuresByCode([
  ['28P01 28000 1045', 'wrong user or password', 'correct the user and the password of the connection'],
  ['3D000 1046 1049', 'no such database', 'create it, or correct its name in the connection'],
  ['3F000', 'no such schema', 'create it, or give another one: postgresStorage({ schema })'],
  [
    '42501 1044 1142 1143',
    'no right to do this',
    'grant the user of the connection USAGE on the schema, and SELECT, INSERT, UPDATE, DELETE on the tables debate_space_…; ' +
      'if it may not create tables, run the SQL of `npx debate-space storage migration` as another user',
  ],
  [
    '42P01 1146',
    'a table is missing',
    'restart the app without migrate: false, or run the SQL of `npx debate-space storage migration`',
  ],
  ['25006 1290 1792 1836', 'read-only', 'connect to the primary'],
  ['53100 1021 1114', 'disk full', 'make room; no restart is needed'],
  ['53300 1040', 'too many connections', 'raise max_connections, or lower the size of the pools'],
]);
/** The server has undone a statement or a transaction because of another one. */
const CONFLICTS = ['40001', '40P01', '1213', '1205', '1020'];

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
        reject(this.#failure(undefined));
      }, timeoutMs).unref();
      const fail = (error: unknown): void => {
        reject(this.#failure(error));
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
        const isRepeatable = codesOf(error).some((code) => CONFLICTS.includes(code));
        if (!isRepeatable || late.aborted || repeats === MAX_REPEATS) throw error;
        await sleep(Math.random() * MAX_REPEAT_DELAY_MS);
      }
    }
  }

  #failure(error: unknown): StorageError {
    if (error instanceof StorageError) return error;
    const codes = codesOf(error);
    const code = codes.find((each) => FAILURES.has(each)) ?? '';
    const known = FAILURES.get(code);
    if (known) return new StorageError(`${this.server} failed (${code}: ${known.meaning})`, known.hint);
    const word = error instanceof Error ? error.name : 'no answer';
    const hint = 'check that it runs, and that a connection of the pool is free';
    return new StorageError(`${this.server} failed (${codes.at(-1) ?? word})`, hint);
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

function failuresByCode(failures: readonly (readonly [codes: string, meaning: string, hint: string])[]) {
  return new Map(
    failures.flatMap(([codes, meaning, hint]) =>
      codes.split(' ').map((code) => [code, { meaning, hint }] as const),
    ),
  );
}

/** From the outside to the inside: ORMs keep the driver's error in one of these. */
function codesOf(error: unknown, depth = 4): string[] {
  if (typeof error !== 'object' || error === null || depth === 0) return [];
  const { code, errno, originalCode, cause, meta, driverAdapterError, driverError, original } =
    error as Record<string, unknown>;
  const own = [originalCode, code, errno]
    .filter((each) => typeof each === 'string' || typeof each === 'number')
    .map(String)
    .filter((each) => /^\w{3,40}$/.test(each));
  return [
    ...own,
    ...[cause, meta, driverAdapterError, driverError, original].flatMap((inner) => codesOf(inner, depth - 1)),
  ];
}
