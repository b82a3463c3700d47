import { existsSync } from 'node:fs';
import { mkdir, open, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { StorageError } from '../../errors.js';
import type { StorageWarning } from '../storage.js';
import { keyFile } from './key-file.js';

/** More than a new file takes. */
const PROBE_BYTES = 256 * 1024;
/** LMDB's first two pages begin with these: whichever has the higher number of a transaction counts. */
const META = { bytes: 160, magic: 24, pageSize: 48, lastPage: 144, transaction: 152 };
const MAGIC = 0xbeefc0de;

interface Meta {
  readonly pageSize: number;
  /** The number of the last page in use. */
  readonly lastPage: number;
  readonly transaction: bigint;
}

/** What {@link prepareFolder} has found. */
export interface PreparedFolder {
  /** Whether there was something in it, of which the data are gone. */
  readonly wasEmptied: boolean;
  readonly warnings: readonly StorageWarning[];
}

/**
 * Makes the folder, and checks what LMDB reports badly or does not survive: a full disk, a file of something else, a file
 * without its end.
 * @throws what the file system says, or {@link StorageError}
 */
export async function prepareFolder(folder: string): Promise<PreparedFolder> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const data = join(folder, 'data.mdb');
  const hadKey = existsSync(keyFile(folder)); // first: another process that starts makes the data, then the key
  const isThere = existsSync(data);
  if (isThere) await assertWhole(data);
  else {
    const probe = join(folder, `probe-${process.pid}`);
    await writeFile(probe, Buffer.alloc(PROBE_BYTES)).finally(() => rm(probe, { force: true }));
  }
  const isEmpty = !isThere || (await stat(data)).size === 0;
  return { wasEmptied: isEmpty && hadKey, warnings: await warningsOf(folder) };
}

/** LMDB maps the file into memory: a page that is not in the file would end the process with SIGBUS or SIGSEGV. */
async function assertWhole(data: string): Promise<void> {
  const file = await open(data, 'r+');
  try {
    if ((await file.stat()).size === 0) return;
    const first = await metaAt(file, 0);
    const second = first && (await metaAt(file, first.pageSize));
    const { size } = await file.stat(); // it only grows while another process writes
    const latest = second && second.transaction > first.transaction ? second : first;
    if (second && latest && size >= (latest.lastPage + 1) * latest.pageSize) return;
    throw new StorageError(
      `${data} is cut off: its end is missing`,
      'restore the folder from a backup, or move it away, and an empty one is made; the logouts and erasures that waited in it are lost then',
    );
  } finally {
    await file.close();
  }
}

/** @returns `undefined` when the file ends before */
async function metaAt(file: FileHandle, position: number): Promise<Meta | undefined> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(META.bytes), 0, META.bytes, position);
  if (bytesRead < META.bytes) return undefined;
  if (buffer.readUInt32LE(META.magic) !== MAGIC) throw new Error('MDB_INVALID');
  return {
    pageSize: buffer.readUInt32LE(META.pageSize),
    lastPage: Number(buffer.readBigUInt64LE(META.lastPage)),
    transaction: buffer.readBigUInt64LE(META.transaction),
  };
}

async function warningsOf(folder: string): Promise<readonly StorageWarning[]> {
  const mode = (await stat(folder)).mode & 0o777;
  if (process.platform === 'win32' || (mode & 0o077) === 0) return [];
  return [
    {
      problem: `The folder ${folder} is open to other users of this machine (mode 0${mode.toString(8)})`,
      hint: `chmod 700 ${folder}`,
    },
  ];
}
