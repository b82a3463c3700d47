import { StorageError, type RangeOptions, type StorageRow, type StorageValues } from './storage.js';

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

/** Longer names Postgres cuts off. */
const MAX_NAME_BYTES = 63;
const COMMIT_SUFFIX = '_commit_v1';

/** The table and its function as they stand in SQL, with their schema. */
export interface PostgresTable {
  readonly table: string;
  /** The name ends with its version, so that processes of two versions can run side by side. */
  readonly commit: string;
}

/**
 * @param name as in SQL: `durable_jobs`, `app.durable_jobs`, `"My App".durable_jobs`; without a schema it is in `public`
 * @throws {@link StorageError} when it is none
 */
export function postgresTable(name = 'durable_jobs'): PostgresTable {
  const part = String.raw`([A-Za-z_][A-Za-z0-9_]*|"(?:[^"$\0]|"")+")`;
  const match = new RegExp(`^(?:${part}\\.)?${part}$`).exec(name);
  const table = identifier(match?.[2] ?? '');
  if (!match || Buffer.byteLength(table + COMMIT_SUFFIX) > MAX_NAME_BYTES) {
    throw new StorageError(
      'The option table of postgresStorage is no usable name of a table',
      'give one like app.durable_jobs, of at most 53 bytes',
    );
  }
  const schema = quoted(identifier(match[1] ?? 'public'));
  return { table: `${schema}.${quoted(table)}`, commit: `${schema}.${quoted(table + COMMIT_SUFFIX)}` };
}

/** Postgres folds a name to lower case unless it is quoted. */
function identifier(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part.toLowerCase();
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/**
 * The SQL that sets up the storage: one table and one function. It is one statement, may run any number of times and
 * in several processes at a time, and changes nothing that is there already. The schema must exist.
 *
 * The storage runs it when the table is missing. Where the role of the app may not create tables, run it as a
 * migration, and grant the role of the app `USAGE` on the schema and `SELECT, INSERT, UPDATE, DELETE` on the table.
 *
 * @param options.table as given to `postgresStorage`
 * @throws `StorageError` when the name is not usable
 *
 * @example
 * await queryRunner.query(postgresMigration({ table: 'app.durable_jobs' }));
 */
export function postgresMigration(options: { readonly table?: string } = {}): string {
  const { table, commit } = postgresTable(options.table);
  // Rows are changed all the time and live for seconds: space in each page, and a vacuum after a fiftieth has changed.
  // A commit takes the keys in one order – existing rows by a row lock, absent ones by an insert –, so that two never
  // wait for each other; the exception block undoes all of it. The limit on waiting spares the app's pool.
  return `DO $setup$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('durable-jobs'));

  CREATE TABLE IF NOT EXISTS ${table} (
    key text COLLATE "C" PRIMARY KEY, -- namespace:family:rest
    value text NOT NULL
  ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

  CREATE OR REPLACE FUNCTION ${commit}(checks text, changes text) RETURNS boolean
  LANGUAGE plpgsql SET search_path = pg_catalog SET lock_timeout = '5s' AS $commit$
  DECLARE
    step record;
    present text;
  BEGIN
    FOR step IN
      SELECT coalesce(c.key, n.key) AS key, c.key IS NOT NULL AS checked, c.value AS expected,
             n.key IS NOT NULL AS changed, n.value AS next
      FROM json_each_text(checks::json) AS c FULL JOIN json_each_text(changes::json) AS n ON n.key = c.key
      ORDER BY coalesce(c.key, n.key) COLLATE "C"
    LOOP
      IF step.expected IS NOT NULL THEN
        SELECT value INTO present FROM ${table} WHERE key = step.key FOR UPDATE;
        IF present IS DISTINCT FROM step.expected THEN RAISE SQLSTATE 'DJ001'; END IF;
        IF step.next <> present THEN
          UPDATE ${table} SET value = step.next WHERE key = step.key;
        END IF;
      ELSIF step.checked THEN
        INSERT INTO ${table} VALUES (step.key, coalesce(step.next, '')) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN RAISE SQLSTATE 'DJ001'; END IF;
      ELSE
        IF step.next IS NULL THEN
          DELETE FROM ${table} WHERE key = step.key;
          CONTINUE WHEN FOUND;
        END IF;
        INSERT INTO ${table} VALUES (step.key, coalesce(step.next, ''))
        ON CONFLICT (key) DO UPDATE SET value = excluded.value;
      END IF;
      IF step.next IS NULL AND (step.changed OR step.expected IS NULL) THEN
        DELETE FROM ${table} WHERE key = step.key;
      END IF;
    END LOOP;
    RETURN true;
  EXCEPTION WHEN SQLSTATE 'DJ001' THEN
    RETURN false;
  END
  $commit$;
END
$setup$`;
}
