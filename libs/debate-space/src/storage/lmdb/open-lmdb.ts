import { existsSync } from 'node:fs';
import { mkdir, open as openFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Database, RootDatabase } from 'lmdb';
import { StorageError } from '../../errors.js';
import { Families } from '../families.js';
import type { StorageContext } from '../storage.js';
import { makeKeyFile, readKeyFile } from './key-file.js';
import { bootId, continuedClock, type StoredClock } from './lmdb-clock.js';
import { causeOf, storageError } from './lmdb-errors.js';
import { LmdbSpace } from './lmdb-space.js';
import { ReservedSpace } from './reserved-space.js';

const FORMAT = 2;
const PROBE_BYTES = 256 * 1024; // more than a new file takes
const MAGIC = { at: 24, value: 0xbeefc0de }; // in LMDB's first page
const SETTINGS = {
  noSubdir: false,
  maxDbs: 64,
  permissionsMode: 0o600, // LMDB knows it, its types do not
  overlappingSync: false, // with it LMDB would not report an error of the disk
  eventTurnBatching: false, // with it a process that opens the file twice can wait for itself forever
  txnStartThreshold: Infinity, // all commits of one turn of the event loop are one write
};

let opening: Promise<unknown> = Promise.resolve();

/**
 * One at a time: LMDB opens databases synchronously. While another opening of this process has a transaction under way,
 * which waits for this thread, this thread would wait for that transaction forever.
 * @throws {@link StorageError} with a hint
 */
export function openLmdb(path: string, context: StorageContext): Promise<LmdbSpace> {
  const opened = opening.then(() => openNow(path, context));
  opening = opened.catch(() => undefined);
  return opened;
}

async function openNow(path: string, { namespace, families }: StorageContext): Promise<LmdbSpace> {
  const { open } = await import('lmdb').catch(() => {
    throw new StorageError('The package lmdb is missing or does not load; hint: npm install lmdb');
  });
  const folder = join(path, namespace);
  let root: RootDatabase | undefined;
  try {
    await prepare(folder);
    root = open(folder, SETTINGS);
    const space = new ReservedSpace(join(folder, 'data.mdb'));
    space.ensure(0, 0, false);
    const meta: Database<unknown, string> = root.openDB('meta', { encoding: 'json', useVersions: true });
    const format = meta.get('format') ?? FORMAT;
    if (format !== FORMAT) throw new StorageError(otherFormat(folder, format));
    const boot = await bootId();
    const clock = await root.transaction(() => {
      if (meta.get('format') === undefined) makeKeyFile(folder);
      const stored = meta.get('clock') as StoredClock | undefined;
      const continued = continuedClock(stored, boot);
      if (continued !== stored) void meta.put('clock', continued, 1);
      if (!stored) void meta.put('format', FORMAT, 1);
      return continued;
    });
    const openDB = root.openDB.bind(root);
    const rows = new Families(families, (name) => openDB<string, string>(name, { encoding: 'string' }));
    return new LmdbSpace({ folder, root, rows, meta, clock, space, key: readKeyFile(folder) });
  } catch (error) {
    await root?.close();
    throw storageError(`lmdbStorage() cannot use ${folder}`, await causeOf(error));
  }
}

/** Finds what LMDB reports in riddles, or does not survive: a full disk, a file that is none of its own. */
async function prepare(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const data = join(folder, 'data.mdb');
  if (!existsSync(data)) {
    const probe = join(folder, `probe-${process.pid}`);
    await writeFile(probe, Buffer.alloc(PROBE_BYTES)).finally(() => rm(probe, { force: true }));
    return;
  }
  const file = await openFile(data, 'r+');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0).finally(() => file.close());
  if (bytesRead > 0 && buffer.readUInt32LE(MAGIC.at) !== MAGIC.value) throw new Error('MDB_INVALID');
}

const otherFormat = (folder: string, format: unknown): string =>
  `${folder} was written by another version of nestjs-debate-space (format ${JSON.stringify(format)}, this version knows ${FORMAT}); hint: deliver what waits there with that version, or give another path`;
