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

/**
 * Works with a connection of the host's pool. A late one is cut: its statement may never end, and the pool is the host's.
 * @param end puts the connection back, or cuts it
 * @param isTransaction whether a failure cuts the connection, which rolls back
 */
export async function withConnection<T>(
  late: AbortSignal,
  end: (how: 'release' | 'cut') => void,
  work: () => Promise<T>,
  isTransaction = false,
): Promise<T> {
  let isHeld = true;
  const endOnce = (how: 'release' | 'cut'): void => {
    if (isHeld) end(how);
    isHeld = false;
  };
  late.addEventListener('abort', () => {
    endOnce('cut');
  });
  try {
    late.throwIfAborted();
    const result = await work();
    endOnce('release');
    return result;
  } catch (error) {
    endOnce(isTransaction ? 'cut' : 'release');
    throw error;
  }
}

/** Hands the functions of an ORM nothing that they do not know. */
export function throughFunctions(functions: {
  query: HostQuery;
  transaction: <T>(work: (query: HostQuery) => Promise<T>) => Promise<T>;
}): HostConnection {
  return {
    query: (text, values) => functions.query(text, values),
    transaction: (work) => functions.transaction(work),
  };
}

/** What the error codes of a server mean. */
export interface ServerErrors {
  /** For messages. */
  readonly server: string;
  /** By code of the server or of the system. */
  readonly known: Readonly<Record<string, ServerError>>;
  /** The server has undone a statement or a transaction because of another one. */
  readonly repeatable: readonly string[];
}
export interface ServerError {
  readonly meaning: string;
  readonly hint: string;
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
  readonly #errors: ServerErrors;
  readonly #timeoutMs: number;
  readonly #open = new Set<Promise<unknown>>();
  #isClosed = false;

  constructor(errors: ServerErrors, timeoutMs = CALL_TIMEOUT_MS) {
    this.#errors = errors;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Repeats `work` after a deadlock.
   * @param work sends nothing more once `late` is aborted
   * @throws {@link StorageError} when `work` fails or takes too long, or after {@link close}
   */
  async run<T>(work: (late: AbortSignal) => Promise<T>, timeoutMs = this.#timeoutMs): Promise<T> {
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
        const isRepeatable = codesOf(error).some((code) => this.#errors.repeatable.includes(code));
        if (!isRepeatable || late.aborted || repeats === MAX_REPEATS) throw error;
        await sleep(Math.random() * MAX_REPEAT_DELAY_MS);
      }
    }
  }

  #failure(error: unknown): StorageError {
    if (error instanceof StorageError) return error;
    const { server, known } = this.#errors;
    const codes = codesOf(error);
    const word = error instanceof Error ? error.name : 'no answer';
    const code = codes.find((each) => Object.hasOwn(known, each)) ?? codes.at(-1) ?? word;
    const { meaning, hint } = known[code] ?? {
      meaning: undefined,
      hint: 'check that it runs, and that a connection of the pool is free',
    };
    return new StorageError(
      `${server} failed (${meaning === undefined ? code : `${code}: ${meaning}`})`,
      hint,
    );
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

/** From the outside to the inside: ORMs keep the driver's error in one of these. */
function codesOf(error: unknown, depth = 4): string[] {
  if (typeof error !== 'object' || error === null || depth === 0) return [];
  const { code, errno, originalCode, cause, meta, driverAdapterError, driverError, original } =
    error as Record<string, unknown>;
  const own = [originalCode, code, errno]
    .map(String)
    .filter((each) => /^\w{3,40}$/.test(each) && each !== 'undefined');
  return [
    ...own,
    ...[cause, meta, driverAdapterError, driverError, original].flatMap((inner) => codesOf(inner, depth - 1)),
  ];
}
