import { StorageError } from '../../errors.js';
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

const RISKS = `SELECT string_agg(name, ',') FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit') AND setting = 'off'`;

/** The statements, on any connection. Rejects with what `query` rejects with. */
export class PostgresRows {
  readonly #query: PostgresQuery;
  readonly #names: PostgresTable;
  readonly #prefix: string;

  constructor(query: PostgresQuery, names: PostgresTable, namespace: string) {
    this.#query = query;
    this.#names = names;
    this.#prefix = `${namespace}:`;
  }

  async get(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    const rows = await this.#select(
      `SELECT key, value FROM ${this.#names.table} WHERE key = ANY (ARRAY(SELECT json_array_elements_text($1::text::json)))`,
      JSON.stringify(keys.map((key) => this.#prefix + key)),
    );
    const values = new Map(rows.map(({ key, value }) => [key, value]));
    return keys.map((key) => values.get(this.#prefix + key));
  }

  async range(from: string, to: string, { limit, reverse }: RangeOptions): Promise<readonly StorageRow[]> {
    const order = reverse ? 'DESC' : 'ASC';
    const rows = await this.#select(
      `SELECT key, value FROM ${this.#names.table} WHERE key >= $1 AND key < $2 ORDER BY key ${order} LIMIT $3::text::int`,
      this.#prefix + from,
      this.#prefix + to,
      String(limit),
    );
    return rows.map(({ key = '', value = '' }) => [key.slice(this.#prefix.length), value]);
  }

  async count(family: string): Promise<number> {
    const { table } = this.#names;
    const bounds = [`${this.#prefix}${family}:`, `${this.#prefix}${family};`]; // ';' follows ':'
    return Number(await this.#one(`SELECT count(*) FROM ${table} WHERE key >= $1 AND key < $2`, ...bounds));
  }

  async commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    const made = `${this.#names.commit}($1::text, $2::text)`;
    return (await this.#one(made, this.#json(checks), this.#json(changes))) === 'true';
  }

  /** In ms since 1970. */
  async time(): Promise<number> {
    return Number(await this.#one(`extract(epoch FROM clock_timestamp()) * 1000`));
  }

  /** Whether the table and its function are there. */
  async exist(): Promise<boolean> {
    const { table, commit } = this.#names;
    const there = `to_regclass($1::text) IS NOT NULL AND to_regprocedure($2::text) IS NOT NULL`;
    return (await this.#one(there, table, `${commit}(text,text)`)) === 'true';
  }

  /** The settings under which Postgres may lose its last commits in a crash. */
  async risks(): Promise<readonly string[]> {
    return ((await this.#one(RISKS)) ?? '').split(',').filter(Boolean);
  }

  /** As text, which every driver returns alike. */
  async #one(expression: string, ...values: string[]): Promise<string | undefined> {
    const [row] = await this.#select(`SELECT (${expression})::text AS value`, ...values);
    return row?.value;
  }

  #json(values: StorageValues): string {
    return JSON.stringify(
      Object.fromEntries(Array.from(values, ([key, value]) => [this.#prefix + key, value ?? null])),
    );
  }

  async #select(text: string, ...values: string[]): Promise<readonly { key?: string; value?: string }[]> {
    const result = await this.#query(text, values);
    const rows = Array.isArray(result) ? result : (Object(result) as { rows?: unknown }).rows;
    if (Array.isArray(rows)) return rows as { key?: string; value?: string }[];
    throw new StorageError(
      'Postgres returned no rows. hint: query of postgresStorage must return the result',
    );
  }
}
