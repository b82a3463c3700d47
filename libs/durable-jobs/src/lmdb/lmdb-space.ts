import type { RootDatabase } from 'lmdb';
import { StorageError } from '../storage-error.js';
import type { Families } from '../families.js';
import { MonotonicClock } from '../monotonic-clock.js';
import type { Storage, RangeOptions, StorageRow, StorageValues, StorageWarning } from '../storage.js';
import { conditionalWrite, type LmdbRow, type LmdbRows } from './conditional-write.js';
import { CLOCK, NOTE_MS, type StoredClock } from './lmdb-clock.js';
import type { PreparedFolder, ReservedSpace } from './lmdb-folder.js';

/** Of Linux and macOS; LMDB gives the number only. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG', 28, 122, 69, 27]);
const FORBIDDEN = new Set<unknown>(['EACCES', 'EPERM', 'EROFS']);

/** `rows`: a database per family, of which LMDB knows how many rows it has. `meta`: the format and the clock. */
interface LmdbFile {
  readonly folder: string;
  readonly root: RootDatabase;
  readonly rows: Families<LmdbRows>;
  readonly meta: LmdbRows;
  readonly clock: StoredClock;
  readonly space: ReservedSpace;
  readonly close: () => Promise<void>;
}

/** An open file. Nothing reaches LMDB after {@link close}: LMDB would end the process. */
export class LmdbSpace implements Storage {
  readonly place: string;
  readonly key: string;
  readonly wasEmptied: boolean;
  readonly warnings: readonly StorageWarning[];
  readonly #file: LmdbFile;
  readonly #clock: MonotonicClock;
  readonly #commits = new Set<Promise<boolean>>();
  #seen: number;
  #closed: Promise<void> | undefined;

  constructor(file: LmdbFile, { key, wasEmptied, warnings }: PreparedFolder & { readonly key: string }) {
    this.place = `the folder ${file.folder}`;
    this.key = key;
    this.wasEmptied = wasEmptied;
    this.warnings = warnings;
    this.#file = file;
    this.#clock = new MonotonicClock(file.clock.offset);
    this.#seen = file.clock.seen;
  }

  get(keys: readonly string[]): readonly (string | undefined)[] {
    return this.#read(({ rows }) => keys.map((key) => rows.of(key).get(key)));
  }

  range(from: string, to: string, { limit, reverse }: RangeOptions): readonly StorageRow[] {
    const bounds = reverse
      ? { start: to, end: from, exclusiveStart: true, inclusiveEnd: true, reverse }
      : { start: from, end: to };
    const found = this.#read(({ rows }) => [...rows.of(from).getRange({ ...bounds, limit })]);
    return found.map(({ key, value }) => [key, value]);
  }

  count(family: string): number {
    return this.#read(({ rows }) => rows.get(family).getStats() as { entryCount: number }).entryCount;
  }

  async commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    const { folder, root, rows, meta, clock, space } = this.#openFile();
    for (const key of [...checks.keys(), ...changes.keys()]) assertKey(key, rows);
    const absent = [...checks].filter(([, value]) => value === undefined);
    const isNew = absent.some(([key]) => changes.get(key) !== undefined);
    const seen = this.now();
    const isNoted = seen < this.#seen + NOTE_MS;
    const note: readonly LmdbRow[] = isNoted ? [] : [[meta, CLOCK, JSON.stringify({ ...clock, seen })]];
    const inRows = ([key, value]: readonly [string, string | undefined]): LmdbRow => [
      rows.of(key),
      key,
      value,
    ];
    const { lastPageNumber, pageSize } = root.getStats() as Record<'lastPageNumber' | 'pageSize', number>;
    try {
      const giveBack = space.take((lastPageNumber + 1) * pageSize, changes, isNew);
      const written = [...[...changes].map(inRows), ...note];
      const commit = conditionalWrite(root, meta, [...checks].map(inRows), written).finally(giveBack);
      this.#commits.add(commit);
      const isMade = await commit.finally(() => this.#commits.delete(commit));
      if (isMade && !isNoted) this.#seen = seen;
      return isMade;
    } catch (error) {
      throw storageError(`The storage in ${folder} could not be written`, await causeOf(error));
    }
  }

  now(): number {
    return this.#clock.now();
  }

  close(): Promise<void> {
    return (this.#closed ??= Promise.allSettled(this.#commits).then(() => this.#file.close()));
  }

  #read<T>(look: (file: LmdbFile) => T): T {
    const file = this.#openFile();
    try {
      file.root.resetReadTxn(); // or this turn would not see what another process has committed
      return look(file);
    } catch (error) {
      throw storageError(`The storage in ${file.folder} could not be read`, error);
    }
  }

  #openFile(): LmdbFile {
    if (this.#closed) throw new StorageError(`The storage in ${this.#file.folder} is closed`);
    return this.#file;
  }
}

/** Before a transaction: LMDB would keep what came before a key that it refuses. */
function assertKey(key: string, rows: LmdbFile['rows']): void {
  if (key.length > 1_500) throw new TypeError('A key of a storage has at most 1,500 characters');
  rows.of(key);
}

/** @param what happened, such as "The storage in /data could not be written" */
export function storageError(what: string, error: unknown): unknown {
  if (error instanceof StorageError || error instanceof TypeError) return error;
  const { code, message = '' } = error as { code?: string | number; message?: string };
  const reason = code ?? /MDB_\w+/.exec(message)?.[0] ?? 'no reason given';
  return new StorageError(`${what} (${reason})`, hintFor(reason));
}

function hintFor(reason: string | number): string {
  if (FULL.has(reason)) return 'make room: the disk is full; no restart of the app is needed';
  if (reason === 'ENOTDIR' || reason === 'EEXIST') return 'give another path: that is not a folder';
  if (FORBIDDEN.has(reason)) return 'give the folder to the user that runs the app, or give another path';
  return 'check the disk and restart the app; if the file is damaged, move the folder away, and an empty one is made';
}

/** LMDB's real reason comes in a promise of its own, whose rejection nobody may leave unhandled. */
export const causeOf = async (error: unknown): Promise<unknown> =>
  (await (error as { commitError?: Promise<never> }).commitError?.catch((cause: unknown) => cause)) ?? error;
