import { StorageError } from '../storage-error.js';
import type { RangeOptions, StorageRow, StorageValues } from '../storage.js';
import type { PostgresTable } from './postgres-table.js';

/**
 * Runs one statement on the host's own connection, and returns its rows – as a list, or as `rows` of an object.
 * Every `$1`, `$2`, … occurs once and in order, and every value is a string.
 *
 * @example pg
 * (text, values) => pool.query(text, values)
 * @example TypeORM
 * (text, values) => dataSource.query(text, values)
 * @example Prisma
 * (text, values) => prisma.$queryRawUnsafe(text, ...values)
 * @example Drizzle, with node-postgres
 * (text, values) => db.$client.query(text, values)
 */
export type PostgresQuery = (text: string, values: string[]) => Promise<unknown>;

/** Runs one statement, and reads the result that `query` returned. */
export type PostgresCall = <T>(text: string, values: string[], read: (result: unknown) => T) => Promise<T>;

type PostgresRow = Readonly<Partial<Record<'key' | 'value', string>>>;

const RISKS = `SELECT coalesce(string_agg(name, ','), '') FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit') AND setting = 'off'`;

/** The statements, on any connection. Rejects with what the call rejects with. */
export class PostgresRows {
  readonly #call: PostgresCall;
  readonly #names: PostgresTable;
  readonly #prefix: string;

  /** @param prefix of the keys of one application */
  constructor(call: PostgresCall, names: PostgresTable, prefix: string) {
    this.#call = call;
    this.#names = names;
    this.#prefix = prefix;
  }

  /** The same rows on another connection. */
  on(call: PostgresCall): PostgresRows {
    return new PostgresRows(call, this.#names, this.#prefix);
  }

  get(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    const names = keys.map((key) => this.#prefix + key);
    const isAsked = 'key = ANY (ARRAY(SELECT json_array_elements_text($1::text::json)))';
    return this.#rows(isAsked, [JSON.stringify(names)], (rows) => {
      const values = new Map(rows.map(({ key, value }) => [key, value]));
      return names.map((name) => values.get(name));
    });
  }

  range(from: string, to: string, { limit, reverse }: RangeOptions): Promise<readonly StorageRow[]> {
    const isWithin = `key >= $1 AND key < $2 ORDER BY key ${reverse ? 'DESC' : 'ASC'} LIMIT $3::text::int`;
    return this.#rows(isWithin, [this.#prefix + from, this.#prefix + to, String(limit)], (rows) =>
      rows.map(({ key = '', value = '' }) => [key.slice(this.#prefix.length), value]),
    );
  }

  count(family: string): Promise<number> {
    const bounds = [`${this.#prefix}${family}:`, `${this.#prefix}${family};`]; // ';' follows ':'
    const count = `SELECT count(*) FROM ${this.#names.table} WHERE key >= $1 AND key < $2`;
    return this.#one(count, bounds, Number);
  }

  commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    const commit = `${this.#names.commit}($1::text, $2::text)`;
    return this.#one(commit, [this.#json(checks), this.#json(changes)], (made) => made === 'true');
  }

  /** In ms since 1970. */
  time(): Promise<number> {
    return this.#one('extract(epoch FROM clock_timestamp()) * 1000', [], Number);
  }

  /** Whether the table and its function are there. */
  exist(): Promise<boolean> {
    const { table, commit } = this.#names;
    const exist = 'to_regclass($1::text) IS NOT NULL AND to_regprocedure($2::text) IS NOT NULL';
    return this.#one(exist, [table, `${commit}(text,text)`], (there) => there === 'true');
  }

  /** The settings under which Postgres may lose its last commits in a crash. */
  risks(): Promise<readonly string[]> {
    return this.#one(RISKS, [], (names = '') => names.split(',').filter(Boolean));
  }

  #json(values: StorageValues): string {
    const entries = Array.from(values, ([key, value]) => [this.#prefix + key, value ?? null] as const);
    return JSON.stringify(Object.fromEntries(entries));
  }

  #rows<T>(condition: string, values: string[], read: (rows: readonly PostgresRow[]) => T): Promise<T> {
    return this.#select(`SELECT key, value FROM ${this.#names.table} WHERE ${condition}`, values, read);
  }

  /** As text, which every driver returns alike. */
  #one<T>(expression: string, values: string[], read: (value?: string) => T): Promise<T> {
    return this.#select(`SELECT (${expression})::text AS value`, values, ([row]) => read(row?.value));
  }

  #select<T>(text: string, values: string[], read: (rows: readonly PostgresRow[]) => T): Promise<T> {
    return this.#call(text, values, (result) => {
      const rows = Array.isArray(result) ? result : (Object(result) as { rows?: unknown }).rows;
      if (Array.isArray(rows)) return read(rows as PostgresRow[]);
      throw new StorageError('Postgres returned no rows', 'query of postgresStorage must return the result');
    });
  }
}
