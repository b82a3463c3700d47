import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  StorageError,
  type Storage,
  type HostTransaction,
  type StorageContext,
  type StorageEngine,
  type StorageView,
  type StorageWarning,
} from './storage.js';
import { ServerCalls, reasonOf, ServerClock } from './server-calls.js';
import {
  PostgresRows,
  type PostgresCall,
  type PostgresQuery,
  postgresMigration,
  postgresTable,
} from './postgres-rows.js';

/** How the storage reaches Postgres, and in which table it keeps its rows. */
export interface PostgresStorageOptions {
  /** The host's own connection or pool, which stays the host's: the storage does not close it. */
  readonly query: PostgresQuery;
  /** As in SQL, such as `app.durable_jobs`. Applications may share one. @defaultValue `public.durable_jobs` */
  readonly table?: string;
  /** How long one call may take before it is given up with an unknown outcome, in ms. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

const COUNT_IS_GOOD_FOR_MS = 1_000;
const MAX_REPEAT_DELAY_MS = 50;
/** A serialization failure, a deadlock. */
const REPEATABLE = new Set<unknown>(['40001', '40P01']);
/** There is no such table, or no such schema. */
const MISSING = new Set<unknown>(['42P01', '3F000']);

/**
 * Keeps everything in one table of Postgres 12 or later, through the host's own connection. When the table is missing,
 * opening creates it; a role that may not needs {@link postgresMigration} to have run.
 *
 * @example
 * storage: postgresStorage({ query: (text, values) => pool.query(text, values), table: 'app.durable_jobs' })
 */
export function postgresStorage(options: PostgresStorageOptions): StorageEngine {
  return {
    name: 'postgres',
    guarantee:
      'survives crashes of the app, and is as durable as this Postgres, which with synchronous_commit loses nothing',
    durable: true,
    open: (context) => PostgresStorage.open(options, context),
  };
}

/** A storage of which a commit can be part of the host's own transaction. */
export class PostgresStorage extends PostgresRows implements Storage {
  readonly place: string;
  readonly #calls: ServerCalls;
  readonly #statements: Statements;
  readonly #clock = new ServerClock(() => this.time());
  readonly #counts = new Map<string, { readonly at: number; readonly count: Promise<number> }>();
  warnings: readonly StorageWarning[] = [];

  private constructor(options: PostgresStorageOptions, namespace: string, calls: ServerCalls) {
    const names = postgresTable(options.table);
    const statements = new Statements(options);
    const call: PostgresCall = (text, values, read) =>
      calls.run(async (isLate) => read(await statements.run(text, values, isLate)));
    super(call, names, `${namespace}:`);
    this.place = `the table ${names.table}`;
    this.#calls = calls;
    this.#statements = statements;
  }

  /** @internal */
  static async open(options: PostgresStorageOptions, context: StorageContext): Promise<PostgresStorage> {
    const hint =
      'check that it runs, that a connection of the pool is free, and that the role may read and write the table';
    const calls = new ServerCalls('Postgres', hint, options.timeoutMs);
    const storage = new PostgresStorage(options, context.namespace, calls);
    if (!(await storage.exist())) await calls.run(() => setUp(options));
    await storage.commit(new Map([['open:', undefined]]), new Map()); // writes and removes a row: the role may
    storage.warnings = (await storage.risks()).map((name) => ({
      problem: `This Postgres may lose its last commits in a crash (${name} = off)`,
      hint: `set ${name} = on`,
    }));
    await storage.#clock.start(context.contained);
    return storage;
  }

  get wasEmptied(): boolean {
    return this.#statements.hasMissedTable;
  }

  /** Postgres counts row by row, 40,000 in about 20 ms: a count is kept for a second. */
  override count(family: string): Promise<number> {
    const kept = this.#counts.get(family);
    if (kept && performance.now() - kept.at < COUNT_IS_GOOD_FOR_MS) return kept.count;
    const count = super.count(family);
    this.#counts.set(family, { at: performance.now(), count });
    count.catch(() => this.#counts.delete(family));
    return count;
  }

  /**
   * The same rows as part of a transaction that the host has open: its changes exist exactly if the host commits.
   * Errors are those of `query`, so that the host repeats its transaction on 40001 and 40P01 as it always does; the
   * time limit is the host's too. A transaction should have one commit: two may wait for each other with those of another.
   */
  within(transaction: HostTransaction): StorageView {
    return this.on(async (text, values, read) => read(await transaction.query(text, values)));
  }

  now(): number {
    return this.#clock.now();
  }

  close(): Promise<void> {
    this.#clock.stop();
    return this.#calls.close();
  }
}

/** Statements on the host's connection. A table that was dropped is made again, and the statement is repeated. */
class Statements {
  hasMissedTable = false;
  #settingUp: Promise<void> | undefined;

  constructor(private readonly options: PostgresStorageOptions) {}

  async run(text: string, values: string[], isLate: () => boolean): Promise<unknown> {
    const work = (): Promise<unknown> => this.options.query(text, values);
    try {
      return await repeated(work, isLate);
    } catch (error) {
      if (isLate() || !hasState(error, MISSING)) throw error;
      this.hasMissedTable = true;
      this.#settingUp ??= setUp(this.options).finally(() => (this.#settingUp = undefined));
      await this.#settingUp;
      return repeated(work, isLate);
    }
  }
}

/** Repeats what Postgres has undone because of others. */
async function repeated<T>(work: () => Promise<T>, isLate: () => boolean): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (isLate() || !hasState(error, REPEATABLE)) throw error;
      await sleep(Math.random() * MAX_REPEAT_DELAY_MS);
    }
  }
}

/** The code is looked for wherever a driver or an ORM keeps it. */
function hasState(error: unknown, states: ReadonlySet<unknown>, depth = 4): boolean {
  const { meta, cause, driverAdapterError, originalCode, code } = Object(error) as Record<string, unknown>;
  if ([originalCode, code].some((state) => states.has(state))) return true;
  return depth > 0 && [meta, cause, driverAdapterError].some((inner) => hasState(inner, states, depth - 1));
}

async function setUp({ query, table }: PostgresStorageOptions): Promise<void> {
  try {
    await query(postgresMigration({ table }), []);
  } catch (error) {
    throw new StorageError(
      `The table ${postgresTable(table).table} of postgresStorage is missing and could not be created (${reasonOf(error)})`,
      'run the SQL of postgresMigration({ table }) as a migration, by a role that may create tables in its schema, and grant this role SELECT, INSERT, UPDATE, DELETE on the table',
    );
  }
}

export { postgresMigration, type PostgresQuery } from './postgres-rows.js';
