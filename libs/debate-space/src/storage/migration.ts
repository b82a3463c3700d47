import { StorageError } from '../errors.js';
import type { Query } from './database.js';
import { MIGRATIONS, statementsOf, tablePrefix, TABLES, type Dialect, type Migration } from './schema.js';
import { codesOf } from './server-errors.js';

/** Where the tables of a storage are. */
export interface Tables {
  readonly dialect: Dialect;
  /** Of Postgres the schema, of MySQL the beginning of the names. */
  readonly place?: string;
  /** Counts those of the tables that exist. */
  found(query: Query): Promise<number>;
  /** Runs `work` while no other process migrates, in one transaction where the server can. */
  locked(work: (query: Query) => Promise<void>): Promise<void>;
}

/**
 * The column or the index is there, or has gone, already: MySQL commits each statement of a migration, which may be broken
 * off, and somebody may have emptied the table that has the version.
 */
const DONE_BEFORE = ['1060', '1061', '1091'];
const isDoneBefore = (error: unknown): boolean =>
  codesOf(error).some((code) => DONE_BEFORE.includes(code)) ||
  String((Object(error) as Partial<Error>).message).startsWith('duplicate column name');

/**
 * Brings the tables to the newest version, in order, from the recorded version on.
 * @throws {@link StorageError} when the tables are newer, or older and `isAllowed` is false
 */
export async function migrate(
  tables: Tables,
  query: Query,
  isAllowed: boolean,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const { dialect, place } = tables;
  const newest = migrations.length;
  const version = await versionOf(tables, query);
  if (version > newest)
    throw new StorageError(
      `The tables of the storage have version ${version}, and this version of nestjs-debate-space knows ${newest}`,
      'update nestjs-debate-space in this app',
    );
  if (version === newest) return;
  if (!isAllowed) {
    const state = version === 0 ? 'are missing' : `have version ${version}, and this app needs ${newest}`;
    const flags = [`--dialect ${dialect}`];
    if (place !== undefined) flags.push(dialect === 'postgres' ? `--schema ${place}` : `--prefix ${place}`);
    if (version > 0) flags.push(`--from ${version}`);
    throw new StorageError(
      `The tables of the storage ${state}`,
      `run the SQL of \`npx debate-space storage migration ${flags.join(' ')}\`, or restart the app without migrate: false`,
    );
  }
  await tables.locked(async (inside) => {
    const from = await versionOf(tables, inside); // another process may have been first
    for (const statement of statementsOf(dialect, place, from, migrations))
      try {
        await inside(statement);
      } catch (error) {
        if (!isDoneBefore(error)) throw error;
      }
  });
}

/** The number of the last migration that was run. */
async function versionOf(tables: Tables, query: Query): Promise<number> {
  const { dialect, place } = tables;
  if ((await tables.found(query)) < TABLES.length) return 0;
  const { rows } = await query(
    `SELECT value FROM ${tablePrefix(dialect, place)}debate_space_facts WHERE id = 'version'`,
  );
  return Number(rows[0]?.value ?? 0);
}

/**
 * The SQL that creates the tables, for hosts that open their storage with `migrate: false`.
 *
 * @param place of Postgres the schema of the tables, of MySQL the beginning of their names
 * @param from the version of the tables that are there; 0 without tables
 * @throws {@link StorageError} when `place` is not usable
 */
export const storageMigration = (dialect: Dialect, place?: string, from = 0): string =>
  statementsOf(dialect, place, from)
    .map((statement) => `${statement};\n`)
    .join('');
