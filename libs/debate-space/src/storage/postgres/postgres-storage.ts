import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { StorageError } from '../../errors.js';
import { ServerCalls, reasonOf } from '../server-calls.js';
import { ServerClock } from '../server-clock.js';
import type {
  DebateSpaceStorage,
  HostTransaction,
  RangeOptions,
  StorageContext,
  StorageEngine,
  StorageRow,
  StorageValues,
  StorageView,
} from '../storage.js';
import { isRepeatable } from './postgres-errors.js';
import { postgresMigration } from './postgres-migration.js';
import { PostgresRows, type PostgresQuery } from './postgres-rows.js';
import { postgresTable } from './postgres-table.js';

export interface PostgresStorageOptions {
  /** The host's own connection or pool, which stays the host's: the storage does not close it. */
  readonly query: PostgresQuery;
  /** As in SQL, such as `app.debate_space`. Applications may share one. @defaultValue `public.debate_space` */
  readonly table?: string;
  /** How long one call may take before it is given up with an unknown outcome, in ms. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

const COUNT_IS_GOOD_FOR_MS = 1_000;
const MAX_REPEAT_DELAY_MS = 50;

/**
 * Keeps everything in one table of Postgres 12 or later, through the host's own connection. When the table is missing,
 * opening creates it; a role that may not needs {@link postgresMigration} to have run.
 *
 * @example
 * storage: postgresStorage({ query: (text, values) => pool.query(text, values), table: 'app.debate_space' })
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
export class PostgresStorage implements DebateSpaceStorage {
  readonly #rowsOn: (query: PostgresQuery) => PostgresRows;
  readonly #rows: PostgresRows;
  readonly #calls: ServerCalls;
  readonly #clock = new ServerClock(() => this.#calls.run(() => this.#rows.time()));
  warnings: readonly string[] = [];
  readonly #counts = new Map<string, { readonly at: number; readonly count: Promise<number> }>();

  private constructor({ query, table, timeoutMs }: PostgresStorageOptions, namespace: string) {
    const names = postgresTable(table);
    this.#rowsOn = (connection) => new PostgresRows(connection, names, namespace);
    this.#rows = this.#rowsOn(query);
    this.#calls = new ServerCalls({
      server: 'Postgres',
      hint: 'check that it runs, that a connection of the pool is free, and that the role may read and write the table',
      timeoutMs,
    });
  }

  /** @internal */
  static async open(options: PostgresStorageOptions, context: StorageContext): Promise<PostgresStorage> {
    const storage = new PostgresStorage(options, context.namespace);
    if (!(await storage.#calls.run(() => storage.#rows.exist())))
      await storage.#calls.run(() => setUp(options));
    await storage.commit(new Map([['open:', undefined]]), new Map()); // writes and removes a row: the role may
    const risks = await storage.#calls.run(() => storage.#rows.risks());
    storage.warnings = risks.map((name) => `This Postgres may lose its last commits in a crash (${name} = off). hint: set ${name} = on`); // prettier-ignore
    await storage.#clock.start(context.contained);
    return storage;
  }

  get(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return this.#calls.run(() => this.#rows.get(keys));
  }

  range(from: string, to: string, options: RangeOptions): Promise<readonly StorageRow[]> {
    return this.#calls.run(() => this.#rows.range(from, to, options));
  }

  /** Postgres counts row by row, 40,000 in about 20 ms: a count is kept for a second. */
  count(family: string): Promise<number> {
    const kept = this.#counts.get(family);
    if (kept && performance.now() - kept.at < COUNT_IS_GOOD_FOR_MS) return kept.count;
    const count = this.#calls.run(() => this.#rows.count(family));
    this.#counts.set(family, { at: performance.now(), count });
    count.catch(() => this.#counts.delete(family));
    return count;
  }

  commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    return this.#calls.run(async (isLate) => {
      for (;;) {
        try {
          return await this.#rows.commit(checks, changes);
        } catch (error) {
          if (isLate() || !isRepeatable(error)) throw error;
          await sleep(Math.random() * MAX_REPEAT_DELAY_MS);
        }
      }
    });
  }

  /**
   * The same rows as part of a transaction that the host has open: its changes exist exactly if the host commits.
   * Errors are those of `query`, so that the host repeats its transaction on 40001 and 40P01 as it always does; the
   * time limit is the host's too. A transaction should have one commit: two may wait for each other with those of another.
   */
  within(transaction: HostTransaction): StorageView {
    return this.#rowsOn((text, values) => transaction.query(text, values));
  }

  now(): number {
    return this.#clock.now();
  }

  close(): Promise<void> {
    this.#clock.stop();
    return this.#calls.close();
  }
}

async function setUp({ query, table }: PostgresStorageOptions): Promise<void> {
  try {
    await query(postgresMigration({ table }), []);
  } catch (error) {
    throw new StorageError(
      `The table of postgresStorage is missing and could not be created (${reasonOf(error)}). hint: run the SQL of postgresMigration({ table }) as a migration, by a role that may create tables in its schema, and grant this role SELECT, INSERT, UPDATE, DELETE on the table`,
    );
  }
}
