import { resolve } from 'node:path';
import type { open as openLmdb, RootDatabase } from 'lmdb';
import { StorageError, Families, type StorageContext, type StorageEngine } from './storage.js';
import { makeKeyFile, prepareFolder, readKeyFile, ReservedSpace } from './lmdb-folder.js';
import {
  bootId,
  causeOf,
  CLOCK,
  conditionalWrite,
  continuedClock,
  LmdbSpace,
  ROWS,
  storageError,
  type LmdbRow,
  type LmdbRows,
  type StoredClock,
} from './lmdb-space.js';

/** Where the storage keeps its files. */
export interface LmdbStorageOptions {
  /**
   * A folder on a disk of this machine, made when it is missing; not a network file system. Each application has a folder
   * of its own in it, readable by its user only (0700), which several processes may share. The file `storage-key` in there
   * (0600) encrypts unless the option `storageKey` is given, and is the last key beside it: a backup needs both.
   */
  readonly path: string;
}

const FORMAT = '3';
const SETTINGS = {
  noSubdir: false,
  maxDbs: 64,
  permissionsMode: 0o600, // LMDB knows it, its types do not
  overlappingSync: false, // with it LMDB would not report an error of the disk
  eventTurnBatching: false, // with it a process that opens the file twice can wait for itself forever
  txnStartThreshold: Infinity, // all commits of one turn of the event loop are one write
};

/** Open in this process, once each: a second opening would block the thread that the commits of the first need. */
const shared = new Map<string, { root: RootDatabase; space: ReservedSpace; users: number }>();

/**
 * Keeps everything in a file of this machine: commits survive a crash, kill -9 and power loss. Needs the package `lmdb`.
 * While the disk is full, commits that add records reject with a `StorageError`; those that finish work go on. Opening
 * rejects with one when `lmdb` is not installed, `path` is no folder or not writable, or the file in it is damaged or of
 * another format.
 */
export function lmdbStorage({ path }: LmdbStorageOptions): StorageEngine {
  return {
    name: 'lmdb',
    guarantee: 'what is stored survives a crash, kill -9 and power loss of this machine',
    durable: true,
    open: (context) => openSpace(path, context),
  };
}

async function openSpace(path: string, { namespace, families }: StorageContext): Promise<LmdbSpace> {
  const { open } = await importLmdb().catch(() => {
    throw new StorageError('The package lmdb is missing or does not load', 'npm install lmdb');
  });
  const folder = resolve(path, namespace);
  let close: (() => Promise<void>) | undefined;
  try {
    const { wasEmptied, warnings } = await prepareFolder(folder);
    const known = shared.get(folder);
    const file = known ?? { root: open(folder, SETTINGS), space: new ReservedSpace(folder), users: 0 };
    shared.set(folder, file);
    file.users += 1;
    close = async () => {
      file.users -= 1;
      if (file.users === 0 && shared.delete(folder)) await file.root.close();
    };
    file.space.take(0, new Map(), false);
    const meta = file.root.openDB<string, string>('meta', ROWS);
    const clock = await enter(folder, file.root, meta);
    const rows = new Families(families, (name) => file.root.openDB<string, string>(name, ROWS));
    const more = { wasEmptied, warnings, key: readKeyFile(folder) };
    return new LmdbSpace({ folder, ...file, meta, rows, clock, close }, more);
  } catch (error) {
    await close?.();
    throw storageError(`lmdbStorage() cannot use ${folder}`, await causeOf(error));
  }
}

/** A parameter, because bundlers and minifiers look into constants: a native package cannot be a part of a bundle. */
function importLmdb(name = 'lmdb'): Promise<{ open: typeof openLmdb }> {
  return import(/* webpackIgnore: true */ name) as Promise<{ open: typeof openLmdb }>;
}

/** Makes what a new file needs, and continues the clock of one that is there. */
async function enter(folder: string, root: RootDatabase, meta: LmdbRows): Promise<StoredClock> {
  const boot = await bootId();
  for (;;) {
    root.resetReadTxn();
    const format = meta.get('format');
    if (format === undefined) makeKeyFile(folder);
    else if (format !== FORMAT) {
      throw new StorageError(
        `${folder} was written by another version of durable-jobs (format ${format}, this version knows ${FORMAT})`,
        'deliver what waits there with that version, or give another path',
      );
    }
    const text = meta.get(CLOCK);
    const stored = text === undefined ? undefined : (JSON.parse(text) as StoredClock);
    const clock = continuedClock(stored, boot);
    if (format !== undefined && clock === stored) return clock;
    const before: LmdbRow[] = [
      [meta, 'format', format],
      [meta, CLOCK, text],
    ];
    const after: LmdbRow[] = [
      [meta, 'format', FORMAT],
      [meta, CLOCK, JSON.stringify(clock)],
    ];
    if (await conditionalWrite(root, meta, before, after)) return clock;
  }
}
