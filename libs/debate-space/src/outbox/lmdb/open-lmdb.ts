import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, open as openFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RootDatabase } from 'lmdb';
import { OutboxError } from '../../errors.js';
import { openDatabases, type LmdbDatabases } from './lmdb-databases.js';
import { openError } from './lmdb-errors.js';
import { LmdbFile } from './lmdb-file.js';
import { ReservedSpace } from './reserved-space.js';

const FORMAT = 1;
/** More than a new file takes. */
const PROBE_BYTES = 256 * 1024;
/** Of LMDB's first page. */
const MAGIC = 0xbeefc0de;
const MAGIC_AT = 24;

/**
 * Opens the file of one application, and makes it when there is none.
 * @throws {OutboxError} with the cure
 */
export async function openLmdb(path: string, namespace: string): Promise<LmdbFile> {
  const { open } = await loadLmdb();
  const folder = join(path, namespace);
  let root: RootDatabase | undefined;
  try {
    await prepare(folder);
    root = open(folder, settings());
    const space = new ReservedSpace(join(folder, 'data.mdb'));
    space.ensure(0, 1, false);
    const meta: LmdbDatabases['meta'] = root.openDB('meta', { encoding: 'json', useVersions: true });
    checkFormat(meta.get('format'), folder);
    const file = new LmdbFile(folder, root, openDatabases(root, meta), space);
    if (meta.get('format') === undefined) {
      await file.write(meta, 'format', undefined, () => void meta.put('format', FORMAT, 1));
    }
    return file;
  } catch (error) {
    await root?.close();
    throw openError(folder, error);
  }
}

async function loadLmdb(): Promise<typeof import('lmdb')> {
  try {
    return await import('lmdb');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') {
      throw new OutboxError(
        'lmdbOutbox(): the package lmdb does not load on this machine. Reinstall it: npm install lmdb',
      );
    }
    throw new OutboxError('lmdbOutbox() needs the package lmdb: npm install lmdb');
  }
}

function settings() {
  return {
    noSubdir: false,
    maxDbs: 16,
    permissionsMode: 0o600, // LMDB knows it, its types do not
    /** A commit is on the disk when it resolves. With overlapping, an error of the disk is never heard of. */
    overlappingSync: false,
    /** Otherwise a process that opens the same file twice can wait for itself for ever. */
    eventTurnBatching: false,
    /** Everything that is asked for before the process turns to something else is one write. */
    txnStartThreshold: Infinity,
  };
}

/** Finds out now what LMDB would only say in riddles, or not survive. */
async function prepare(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const data = join(folder, 'data.mdb');
  const size = await stat(data).then(
    (found) => found.size,
    () => undefined,
  );
  if (size !== undefined) {
    await access(data, constants.R_OK | constants.W_OK);
    if (size > 0) await checkMagic(data);
    return;
  }
  const probe = join(folder, `probe-${randomUUID()}`);
  try {
    await writeFile(probe, Buffer.alloc(PROBE_BYTES), { mode: 0o600 });
  } finally {
    await rm(probe, { force: true });
  }
}

/** Given another file than one of its own, LMDB ends the process. */
async function checkMagic(data: string): Promise<void> {
  const file = await openFile(data);
  try {
    const { buffer } = await file.read(Buffer.alloc(MAGIC_AT + 4), 0, MAGIC_AT + 4, 0);
    if (buffer.readUInt32LE(MAGIC_AT) !== MAGIC) throw new Error('MDB_INVALID');
  } finally {
    await file.close();
  }
}

function checkFormat(format: unknown, folder: string): void {
  if (format === undefined || format === FORMAT) return;
  throw new OutboxError(
    `The outbox in ${folder} has format ${JSON.stringify(format)}, and this version of nestjs-debate-space knows format ${FORMAT}: ` +
      'use the version that wrote it, or give another path and deliver what is there first',
  );
}
