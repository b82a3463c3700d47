import { randomBytes, randomUUID } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statfsSync,
  statSync,
  unlinkSync,
  writeFileSync,
  type Stats,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { StorageError } from '../errors.js';
import { onConflict, takeStatement, type Database, type Query, type Row } from './database.js';
import type { StorageWarning } from './engine.js';

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

/** How long a statement waits while another process writes, in milliseconds: less than a call may take. */
const BUSY_MS = 4_000;
const MAX_STATEMENTS = 200;
/** How many pages a file has at most that is compacted, which takes 0.1 s: 16 MB. */
const MAX_COMPACTED = 4_096;

/**
 * Nothing else opens the file, not even to look: closing it would drop the locks of SQLite, which belong to the process, and
 * another process that closes the file would then remove the WAL.
 * @param path of {@link prepareFile}
 * @throws {@link StorageError} when there is no driver, or an error of the driver's
 */
export async function openDriver(path: string): Promise<SqliteDriver> {
  const Driver = await driverClass();
  const driver = new Driver(path);
  try {
    driver.exec(`PRAGMA busy_timeout = ${BUSY_MS}`); // first: the next one takes a lock
    driver.exec('PRAGMA journal_mode = WAL');
    driver.exec('PRAGMA synchronous = FULL');
    driver.exec('PRAGMA secure_delete = ON'); // erased uids leave the file, sealed or not
    // Rows under hashes are all over the file: with 2 MB, the default, each part of a long list reads and writes most of it.
    driver.exec('PRAGMA cache_size = -131072; PRAGMA wal_autocheckpoint = 8000');
    return driver;
  } catch (error) {
    driver.close();
    throw error;
  }
}

/** Copies the WAL into the file and empties it, so that erased uids leave it, too; not while another process reads. */
export function emptyWal(driver: SqliteDriver): void {
  driver.exec('PRAGMA busy_timeout = 0');
  try {
    driver.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  } finally {
    driver.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  }
}

/**
 * Writes a file of up to 16 MB anew. `secure_delete` overwrites what is removed, but not the copies that SQLite leaves in the
 * unused part of a page when it moves rows to another one: sealed uids, or parts of them.
 */
export function compact(driver: SqliteDriver): void {
  const [found] = driver.prepare('PRAGMA page_count').all();
  if (Number(found?.page_count) <= MAX_COMPACTED) driver.exec('VACUUM');
}

async function driverClass(): Promise<Constructor> {
  const included = process.getBuiltinModule('node:sqlite') as { DatabaseSync: Constructor } | undefined;
  if (included) return included.DatabaseSync;
  const name = 'libsql'; // no literal: the package is optional, and has no types of ours
  try {
    return ((await import(name)) as { default: Constructor }).default;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_DLOPEN_DISABLED') throw error;
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
    dueQueue: 'queue',
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

/** A file that is there, or is made empty, and the key beside it. */
export interface PreparedFile {
  /** Without links. */
  readonly path: string;
  /** The same for all paths of the file. */
  readonly identity: string;
  readonly key: string;
  readonly warnings: readonly StorageWarning[];
}

/** Makes the folder, the key and the file unless they are there. Opens none that was there. */
export function prepareFile(path: unknown): PreparedFile {
  const given = usablePath(path);
  try {
    return prepared(given);
  } catch (error) {
    throw sqliteError(`sqliteStorage() cannot use ${given}`, error);
  }
}

function usablePath(path: unknown): string {
  const refuse = (problem: string, hint: string): never => {
    throw new StorageError(`The option path of sqliteStorage ${problem}`, hint);
  };
  const example = 'give the path of a file, such as ./data/debate-space.db';
  if (typeof path !== 'string' || path.trim() === '') return refuse('is missing or empty', example);
  if (path.startsWith(':memory:'))
    return refuse('is not a file', 'for a storage in memory, leave out the option storage');
  if (/^\w{2,}:/.test(path)) return refuse('is a URL', example);
  if (/[\\/]$/.test(path)) return refuse('is a folder', example);
  if (path.startsWith('\\\\')) return refuse('is on a network', 'give a file on a disk of this machine');
  return resolve(path);
}

function prepared(given: string): PreparedFile {
  mkdirSync(dirname(given), { recursive: true, mode: 0o700 });
  const isLink = lstatSync(given, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  const target = isLink && !existsSync(given) ? resolve(dirname(given), readlinkSync(given)) : given;
  const found = statSync(target, { throwIfNoEntry: false });
  if (found?.isFile() === false)
    throw new StorageError(`sqliteStorage() cannot use ${given} (not a file)`, PLACE);
  const path = found ? realpathSync(target) : join(realpathSync(dirname(target)), basename(target));
  const file = `${path}.key`;
  // The key first: another process that starts makes the key, and then the file.
  if ((found?.size ?? 0) === 0 && !existsSync(file))
    makeFile(file, `${randomBytes(32).toString('base64')}\n`);
  const key = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (!/^[A-Za-z0-9+/]{43}=$/.test(key))
    throw new StorageError(
      `${file} is missing or damaged, and what was encrypted with it cannot be read`,
      'restore it from a backup, or, if everything was stored with the option storageKey, put the output of "openssl rand -base64 32" there',
    );
  makeFile(path, '');
  accessSync(path, constants.R_OK | constants.W_OK);
  const { dev, ino } = statSync(path, { bigint: true });
  return { path, identity: `${dev} ${ino}`, key, warnings: warningsOf(path, file) };
}

/** @throws {@link StorageError} when somebody else has made the key, and so could read everything */
function warningsOf(path: string, keyFile: string): readonly StorageWarning[] {
  const stats = statSync(path);
  const warnings: StorageWarning[] = [];
  const warn = (isSo: boolean, problem: string, hint: string): void => {
    if (isSo) warnings.push({ problem, hint });
  };
  const uid = process.getuid?.();
  const octal = ({ mode }: Stats): string => `mode 0${(mode & 0o777).toString(8)}`;
  if (uid !== undefined) {
    const key = statSync(keyFile);
    if (key.uid !== uid && key.uid !== 0)
      throw new StorageError(
        `The storage key in ${keyFile} belongs to another user of this machine (uid ${key.uid})`,
        'run the app as that user, or, if you trust the key, give the file to the user that runs the app',
      );
    const others = 'Other users of this machine can';
    const isOpen = (key.mode & 0o077) !== 0;
    warn(isOpen, `${others} read the storage key in ${keyFile} (${octal(key)})`, `chmod 600 ${keyFile}`);
    warn(
      (stats.mode & 0o027) !== 0,
      `${others} read or change ${path} (${octal(stats)})`,
      `chmod 600 ${path}*`,
    );
    const isForeign = stats.uid !== uid && stats.uid !== 0;
    warn(isForeign, `${path} belongs to another user of this machine (uid ${stats.uid})`, RIGHTS);
  }
  const isRemote = NETWORKS.includes(statfsSync(path).type >>> 0);
  warn(
    isRemote,
    `${path} is on a network, where SQLite may damage the file`,
    'give a file on a disk of this machine',
  );
  return warnings;
}

/** Of NFS, SMB, CIFS, SMB 2 and 9P (folders of Windows in WSL): types of file systems on Linux. */
const NETWORKS = [0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997];

/**
 * Makes a file that only this user can read, unless it is there. It appears complete, is on the disk, and is not opened under
 * its name: another process, or another thread, may make and open it at the same time.
 */
function makeFile(path: string, text: string): void {
  if (existsSync(path)) return;
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, text, { mode: 0o600, flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(draft);
  }
  if (process.platform === 'win32') return; // cannot synchronize folders
  const folder = openSync(dirname(path), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

const RIGHTS = 'give the file and its folder to the user that runs the app';
const PLACE = 'give the path of a file, in a folder that the user that runs the app can make';
const LOCKED = 'locked';
const PERMISSIONS =
  'start Node.js with --allow-worker, with --allow-addons for libsql, and with --allow-fs-read and --allow-fs-write for the folder of the file';
/** By codes of the system, and by messages of SQLite, which are the same in every driver. */
const MEANINGS: readonly (readonly [sign: RegExp, meaning: string, hint: string])[] = [
  [/^(EACCES|EPERM)|EROFS|readonly/, 'no right to write', RIGHTS],
  [/^ERR_(ACCESS_DENIED|DLOPEN_DISABLED)/, 'the permission model of Node.js forbids it', PERMISSIONS],
  [/^(ENOTDIR|EEXIST|EISDIR|ENOENT|ELOOP)/, 'no such folder, or no file', PLACE],
  [/^(ENOSPC|EDQUOT|EFBIG)|is full/, 'disk full', 'make room; an app that runs needs no restart'],
  [
    /is locked/,
    LOCKED,
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

/** The states of a thread; `EXITING` is that of its process. */
export const [RESTING, WORKING, EXITING] = [0, 1, 2];

/** @param failed the beginning of the message */
export function sqliteError(failed: string, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  // A message of SQLite names tables and columns, and no values.
  const reason = /^E[A-Z_]+$/.test(String(code)) ? String(code) : String(message);
  const known = MEANINGS.find(([sign]) => sign.test(reason));
  return new StorageError(
    `${failed} (${known?.[1] ?? reason})`,
    known?.[2] ?? 'check the disk, and restart the app',
    { unreachable: known?.[1] === LOCKED },
  );
}
