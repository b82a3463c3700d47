import type { RootDatabase, Database } from 'lmdb';
import {
  StorageError,
  type Families,
  type Storage,
  type RangeOptions,
  type StorageRow,
  type StorageValues,
  type StorageWarning,
} from './storage.js';
import { MonotonicClock, monotonicMs } from './steady-clock.js';
import type { PreparedFolder, ReservedSpace } from './lmdb-folder.js';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { hash } from 'node:crypto';

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

/** The row of {@link StoredClock}. */
export const CLOCK = 'clock';
/** A commit notes the time in the file when the last note is older. */
export const NOTE_MS = 60_000;
/** A machine whose clock has moved on by more was not off for that long: its clock is wrong. */
const MAX_OFF_MS = 30 * 24 * 60 * 60_000;

/** What the processes of one boot share. */
export interface StoredClock {
  readonly boot: string;
  /** What the clock of the storage is ahead of the machine's monotonic clock, in ms. */
  readonly offset: number;
  /** No commit is more than {@link NOTE_MS} later. */
  readonly seen: number;
}

/** Linux names each boot. Elsewhere a restart shows as a monotonic clock that has gone back. */
export const bootId = (): Promise<string> =>
  readFile('/proc/sys/kernel/random/boot_id', 'utf8').then((id) => id.trim(), hostname);

/**
 * The date counts only where the monotonic clock cannot continue: in a new file, after a boot, on another machine. Even
 * then it must be later than the last commit, and not by years: everything that waits or is kept for a time depends on it.
 */
export function continuedClock(stored: StoredClock | undefined, boot: string): StoredClock {
  const monotonic = monotonicMs();
  if (stored?.boot === boot && stored.offset + monotonic >= stored.seen) return stored;
  const date = Date.now();
  const latest = stored ? stored.seen + NOTE_MS : date;
  const now = date > latest && date < latest + MAX_OFF_MS ? date : latest;
  return { boot, offset: now - monotonic, seen: now };
}

export type LmdbRows = Database<string, string>;

/** A row and its value; `undefined`: there is no such row. */
export type LmdbRow = readonly [rows: LmdbRows, key: string, value: string | undefined];

/** Each check is a call inside the call of the check before: more would exhaust the stack. */
const MAX_NESTED = 200;

/** How every database of the file is opened. */
export const ROWS = { encoding: 'string', useVersions: true } as const;

/**
 * Makes all changes if every check holds, or else none. LMDB's own thread does it, without a callback: a process that
 * exits while a JavaScript callback has the lock of the file hangs forever, or ends with SIGSEGV.
 * @param meta where a commit of many checks keeps how far it has come; the row is gone when the commit ends
 */
export async function conditionalWrite(
  root: RootDatabase,
  meta: LmdbRows,
  checks: readonly LmdbRow[],
  changes: readonly LmdbRow[],
): Promise<boolean> {
  const held: Promise<boolean>[] = [];
  const change = (): void => {
    for (const row of changes) set(row);
  };
  if (checks.length === 0) held.push(root.batch(change));
  else if (checks.length <= MAX_NESTED) nest(checks, change, held);
  else {
    const inStages = (): void => {
      const last = Math.ceil(checks.length / MAX_NESTED);
      const reached = (stage: number): LmdbRow => [meta, 'stage', String(stage)];
      set(reached(0));
      for (let n = 0; n < last; n += 1) {
        const some = checks.slice(n * MAX_NESTED, (n + 1) * MAX_NESTED);
        const reach = (): void => {
          set(reached(n + 1));
        };
        nest([reached(n), ...some], reach, held);
      }
      nest([reached(last)], change, held);
      set([meta, 'stage', undefined]);
    };
    held.push(root.batch(inStages));
  }
  // A check inside a check that fails may seem to hold: all of them count.
  return (await Promise.all(held)).every(Boolean);
}

/** Does `work` if every check holds. @param held takes the outcome of each check */
function nest(checks: readonly LmdbRow[], work: () => void, held: Promise<boolean>[]): void {
  const within = (inner: () => void, [rows, key, value]: LmdbRow) => {
    return () => {
      const isHeld =
        value === undefined ? rows.ifNoExists(key, inner) : rows.ifVersion(key, versionOf(value), inner);
      held.push(isHeld);
    };
  };
  checks.reduceRight(within, work)();
}

function set([rows, key, value]: LmdbRow): void {
  void (value === undefined ? rows.remove(key) : rows.put(key, value, versionOf(value)));
}

/**
 * LMDB compares numbers: a value is compared by 53 bits of its hash. A check goes wrong only if another process puts, under
 * the same key, another value of the same number: one conflict in 9,000,000,000,000,000, whatever the number of rows.
 */
export function versionOf(value: string): number {
  const bytes = hash('sha256', value, 'buffer');
  return bytes.readUIntBE(0, 6) * 32 + (bytes.readUInt8(6) >> 3);
}
