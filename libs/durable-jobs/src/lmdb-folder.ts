import { randomBytes, randomUUID } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, open, rm, stat, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { StorageError, type StorageValues, type StorageWarning } from './storage.js';

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
      'restore the folder from a backup, or move it away, and an empty one is made; the jobs that waited in it are lost then',
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

/**
 * Makes the key, unless there is one: a link never replaces the key that another process makes at the same time. The key
 * is on the disk before anything that it encrypts.
 */
export function makeKeyFile(folder: string): void {
  const file = keyFile(folder);
  if (existsSync(file)) return;
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
  const directory = openSync(folder, 'r');
  fsyncSync(directory);
  closeSync(directory);
}

const keyFile = (folder: string): string => join(folder, 'storage-key');

export function readKeyFile(folder: string): string {
  const file = keyFile(folder);
  const text = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return text;
  throw new StorageError(
    `${file} is missing or damaged, and what was encrypted with it cannot be read`,
    'restore it from a backup, or, if everything was stored with the option storageKey, put the output of "openssl rand -base64 32" there',
  );
}

/** What a row may need besides its text: copies of the pages that lead to it, the halves of one that is full. */
const PER_ROW = 8 * 1024;
/** What commits have in common: the tops of the trees, the list of free pages. */
const IN_COMMON = 512 * 1024;
/** New records leave so much to the work on those that are there; the file grows by no less at a time. */
const SPARE = 1024 * 1024;

/**
 * Keeps room at the end of the data file that the disk has given already. LMDB must never meet a full disk itself: 3.5.6
 * then writes its message past the end of a buffer, and the process aborts. Zeros are only ever appended, so that they
 * cannot overwrite what another process has written meanwhile.
 */
export class ReservedSpace {
  readonly #file: string;
  #size = 0; // never shrinks
  #taken = 0;

  constructor(folder: string) {
    this.#file = join(folder, 'data.mdb');
  }

  /**
   * @param used bytes from the beginning that hold pages
   * @param changes of a commit, until the function that is returned gives their room back
   * @param isNew whether the commit adds records
   * @throws what the file system says, when it has no room
   */
  take(used: number, changes: StorageValues, isNew: boolean): () => void {
    // A character takes three bytes of UTF-8 or less.
    const bytes = [...changes.values()].reduce((sum, text = '') => sum + PER_ROW + text.length * 3, 0);
    const least = used + IN_COMMON + this.#taken + bytes;
    if (this.#size < least + SPARE) this.#size = statSync(this.#file).size;
    const missing = least + SPARE - this.#size;
    try {
      if (missing > 0) appendFileSync(this.#file, Buffer.alloc(Math.max(SPARE, missing)));
    } catch (error) {
      if (isNew || statSync(this.#file).size < least) throw error;
    }
    this.#taken += bytes;
    return () => void (this.#taken -= bytes);
  }
}
