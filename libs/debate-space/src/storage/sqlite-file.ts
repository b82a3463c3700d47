import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { StorageError } from '../errors.js';
import { onConflict, takeStatement, type Database, type Query, type Row } from './database.js';
import type { StorageWarning } from './storage.js';

/** The calls that node:sqlite and libsql have in common. */
export interface SqliteDriver {
  exec(text: string): unknown;
  prepare(text: string): Statement;
  close(): unknown;
}
interface Statement {
  all(...values: readonly unknown[]): Row[];
  run(...values: readonly unknown[]): { readonly changes: number | bigint };
}
type Constructor = new (path: string) => SqliteDriver;

/** How long a statement waits while another process writes, in milliseconds. */
const BUSY_MS = 5_000;
const MAX_STATEMENTS = 200;

/** @throws {@link StorageError} when there is no driver, or an error of the driver's */
export async function openDriver(path: string): Promise<SqliteDriver> {
  const Driver = await driverClass();
  closeSync(openSync(path, 'a', 0o600)); // the files that SQLite makes beside it get the same mode
  const driver = new Driver(path);
  try {
    driver.exec(`PRAGMA busy_timeout = ${BUSY_MS}`); // first: the next one takes a lock
    driver.exec('PRAGMA journal_mode = WAL');
    driver.exec('PRAGMA synchronous = FULL');
    // Rows under hashes are all over the file: with 2 MB, the default, each part of a long list reads and writes most of it.
    driver.exec('PRAGMA cache_size = -131072; PRAGMA wal_autocheckpoint = 8000');
    return driver;
  } catch (error) {
    driver.close();
    throw error;
  }
}

async function driverClass(): Promise<Constructor> {
  const included = process.getBuiltinModule('node:sqlite') as { DatabaseSync: Constructor } | undefined;
  if (included) return included.DatabaseSync;
  const name = 'libsql'; // no literal: the package is optional, and has no types of ours
  try {
    return ((await import(name)) as { default: Constructor }).default;
  } catch {
    throw new StorageError(
      'The package libsql is missing or does not load',
      'npm install libsql, or run Node.js 22.13 or later, which has SQLite',
    );
  }
}

export function sqliteDatabase(driver: SqliteDriver): Database {
  const statements = new Map<string, Statement>();
  const prepared = (text: string): Statement => {
    const statement = statements.get(text) ?? driver.prepare(text);
    if (statements.size === MAX_STATEMENTS) statements.clear();
    statements.set(text, statement);
    return statement;
  };
  const query: Query = (text, values = []) =>
    new Promise((resolve) => {
      const hasRows = /^\s*SELECT|\bRETURNING\b/.test(text);
      const rows = hasRows ? prepared(text).all(...values) : [];
      resolve({ rows, count: hasRows ? rows.length : Number(prepared(text).run(...values).changes) });
    });
  const database: Database = {
    dialect: 'sqlite',
    now: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    forUpdate: '',
    query,
    transaction: (work) => work(query), // the worker has begun one, with a savepoint for each call
    take: async (take) => (await query(takeStatement(take), take.values.flat())).rows,
    ...onConflict,
    inside: () => database,
    close: () => {
      driver.close();
      return Promise.resolve();
    },
  };
  return database;
}

/**
 * Makes the folder, and the key, unless there is one.
 * @returns the key that is kept beside the file
 */
export function prepareFolder(path: string): {
  readonly key: string;
  readonly warnings: readonly StorageWarning[];
} {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = `${path}.key`;
  // First: another process that starts makes the key, and then the file.
  const isThere = existsSync(path);
  if (isThere) closeSync(openSync(path, 'r+')); // it may be a folder, or read-only
  const hasRows = isThere && statSync(path).size > 0;
  if (!hasRows && !existsSync(file)) makeKey(file);
  const key = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (!/^[A-Za-z0-9+/]{43}=$/.test(key))
    throw new StorageError(
      `${file} is missing or damaged, and what was encrypted with it cannot be read`,
      'restore it from a backup, or, if everything was stored with the option storageKey, put the output of "openssl rand -base64 32" there',
    );
  const mode = statSync(file).mode & 0o777;
  const isOpen = process.platform !== 'win32' && (mode & 0o077) !== 0;
  const problem = `Other users of this machine can read the storage key in ${file} (mode 0${mode.toString(8)})`;
  return { key, warnings: isOpen ? [{ problem, hint: `chmod 600 ${file}` }] : [] };
}

/** A link never replaces the key that another process makes at the same time. The key is on the disk before any row. */
function makeKey(file: string): void {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(draft);
  }
  if (process.platform === 'win32') return; // cannot synchronize folders
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

const RIGHTS = 'give the file and its folder to the user that runs the app';
const PLACE = 'give the path of a file, in a folder that the user that runs the app can make';
/** By codes of the system, and by messages of SQLite, which are the same in every driver. */
const MEANINGS: readonly (readonly [sign: RegExp, meaning: string, hint: string])[] = [
  [/^(EACCES|EPERM)|EROFS|readonly/, 'no right to write', RIGHTS],
  [/^(ENOTDIR|EEXIST|EISDIR|ENOENT)/, 'no such folder, or no file', PLACE],
  [/^(ENOSPC|EDQUOT|EFBIG)|is full/, 'disk full', 'make room; an app that runs needs no restart'],
  [
    /is locked/,
    'locked',
    'another program has a transaction open on the file, such as a shell or a backup; end it',
  ],
  [/not a database/, 'not a file of SQLite', 'give another path, or move the file away'],
  [
    /malformed/,
    'the file is damaged',
    'restore the file from a backup, or move it away, and an empty one is made',
  ],
  [/no such table/, 'a table is missing', 'restart the app, which creates the tables'],
  [/no such column|has no column/, 'a column is missing', 'restore the file from a backup, or move it away'],
  [
    /I\/O error|unable to open/,
    'the disk fails, or has no room',
    'check the disk, and the rights on the folder',
  ],
];

/** @param failed the beginning of the message */
export function sqliteError(failed: string, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  // A message of SQLite names tables and columns, and no values.
  const reason = /^E[A-Z]+$/.test(String(code)) ? String(code) : String(message);
  const known = MEANINGS.find(([sign]) => sign.test(reason));
  return new StorageError(
    `${failed} (${known?.[1] ?? reason})`,
    known?.[2] ?? 'check the disk, and restart the app',
  );
}
