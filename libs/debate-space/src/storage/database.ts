/** A row as the driver gives it: a `bigint` may be text, and `NULL` is `null`. */
export type Row = Readonly<Record<string, unknown>>;

export interface Result {
  readonly rows: readonly Row[];
  /** How many rows the statement changed. */
  readonly count: number;
}

/** Runs one statement. Placeholders are `?`. Rejects with a `StorageError`. */
export type Query = (text: string, values?: readonly unknown[]) => Promise<Result>;

/** Rows to change and to return, in an order, without those that other processes have locked. */
export interface Take {
  readonly table: string;
  readonly where: string;
  readonly order: string;
  readonly limit: number;
  readonly set: string;
  /** Of `where`, then of `set`. */
  readonly values: readonly [where: readonly unknown[], set: readonly unknown[]];
}

/** The columns of new rows, each with a placeholder or an expression. */
export type Columns = Readonly<Record<string, string>>;

/** An SQL engine: it runs statements, and knows the few places where the dialects differ. */
export interface Database {
  readonly dialect: 'postgres' | 'mysql' | 'sqlite';
  /** Milliseconds since 1970 by the clock of the database. The same in a whole statement, or no index could serve it. */
  readonly now: string;
  /** The column of the index of jobs that are due, which has no other jobs: `queue`, or a copy that is `NULL` for the others. */
  readonly dueQueue: string;
  /** The end of a `SELECT` that locks its rows. */
  readonly forUpdate: string;
  readonly query: Query;
  /** Repeats `work` after a deadlock. In a transaction of the host's, it only calls `work`. */
  transaction<T>(work: (query: Query) => Promise<T>): Promise<T>;
  /** Rows as they are *before* the change on MySQL, and after it elsewhere: read only what `set` leaves alone. */
  take(take: Take): Promise<readonly Row[]>;
  /** An `INSERT` of rows that are not there yet; the count is that of the new ones. */
  readonly insertNew: (table: string, columns: Columns, rows?: number) => string;
  /** The same, in a transaction that somebody else began. */
  inside(query: Query): Database;
  close(): Promise<void>;
}

/** An `INSERT` without its first word. */
export function insertedRows(table: string, columns: Columns, rows = 1): string {
  const row = `(${Object.values(columns).join(', ')})`;
  return `INTO ${table} (${Object.keys(columns).join(', ')}) VALUES ${Array<string>(rows).fill(row).join(', ')}`;
}

/** `insertNew` of Postgres and SQLite. */
export const onConflict: Pick<Database, 'insertNew'> = {
  insertNew: (...rows) => `INSERT ${insertedRows(...rows)} ON CONFLICT DO NOTHING`,
};

/**
 * A `take` in one statement, of Postgres and SQLite.
 * @param materialized `MATERIALIZED` where the planner might run the `SELECT` once for each row
 */
export function takeStatement(
  { table, where, order, limit, set }: Take,
  materialized = '',
  locking = '',
): string {
  const taken = `SELECT id FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT ${limit} ${locking}`;
  return `WITH taken AS ${materialized} (${taken}) UPDATE ${table} SET ${set} FROM taken WHERE ${table}.id = taken.id RETURNING *`;
}
