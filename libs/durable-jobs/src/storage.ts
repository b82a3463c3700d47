import type { MaybePromise } from './maybe-promise.js';

/** Texts by key; `undefined`: no such record. A key occurs once. */
export type StorageValues = ReadonlyMap<string, string | undefined>;

/** A row: its key and its value. */
export type StorageRow = readonly [key: string, value: string];

/** How many rows of a range to return, and from which end. */
export interface RangeOptions {
  /** The highest number of rows to return. */
  readonly limit: number;
  /** Whether to begin at the end of the range. */
  readonly reverse?: boolean;
}

/** A setting that an operator should change, for example in a Redis that may evict keys. */
export interface StorageWarning {
  readonly problem: string;
  readonly hint: string;
}

/**
 * An ordered key–value space with atomic compare-and-set: the one place for what must outlive a moment. Several processes may have the same space open.
 *
 * A key is `family:rest`: printable ASCII, in byte order, at most 1,500 characters. A value is text without NUL.
 * `''` is a value. Every method may reject with a {@link StorageError} when the storage cannot be reached.
 */
export interface Storage {
  /** For the boot log. */
  readonly warnings?: readonly StorageWarning[];

  /** Where the rows are, for log lines: a folder, a table, the beginning of keys. */
  readonly place?: string;

  /** Whether the storage itself has noticed that its data were removed, such as a table that was there before. */
  readonly wasEmptied?: boolean;

  /** An encryption key that the storage keeps next to its data: used after the keys of the option `storageKey`. */
  readonly key?: string;

  /** The values, in the order of the keys. Not a snapshot: check what is decided from them in {@link commit}. */
  get(keys: readonly string[]): MaybePromise<readonly (string | undefined)[]>;

  /**
   * The rows from one key, inclusive, to another, exclusive, in the order of their keys – also in reverse.
   * Both keys are of one family. Not a snapshot.
   */
  range(from: string, to: string, options: RangeOptions): MaybePromise<readonly StorageRow[]>;

  /** How many rows a family has. May be up to a second old. */
  count(family: string): MaybePromise<number>;

  /**
   * Makes all changes if every check holds, or else none. A rejection means *unknown*: the changes may have been made.
   * @param checks keys and the values that they must have; `undefined`: the key must be absent
   * @param changes keys and their new values; `undefined` removes the key
   * @returns whether the changes were made; when they are as durable as the storage makes them
   */
  commit(checks: StorageValues, changes: StorageValues): MaybePromise<boolean>;

  /**
   * The same records inside a transaction that the host has open: what is committed there exists exactly if the host
   * commits. Errors are those of the host's connection. Absent where a storage has no transactions of the host's.
   */
  within?(transaction: HostTransaction): StorageView;

  /**
   * The clock of the storage, shared by its processes: whole milliseconds since 1970. It never goes back, and no jump of
   * the machine's clock moves it. It may be ahead of the date or behind it: compare its moments with each other only.
   */
  now(): number;

  /** Waits for open commits. Later calls reject with a {@link StorageError}. */
  close(): MaybePromise<void>;
}

/** Reads and changes within a transaction of the host. */
export type StorageView = Pick<Storage, 'get' | 'range' | 'commit'>;

/** A transaction that the host has open: it runs a statement of SQL there. */
export interface HostTransaction {
  query(text: string, values: string[]): Promise<unknown>;
}

/** The application for which a storage is opened. */
export interface StorageContext {
  /** Separates applications that share a place: `[A-Za-z0-9_-]` only. */
  readonly namespace: string;
  /** Every family of keys that is used: `[a-z]` only. */
  readonly families: readonly string[];
  /** Runs the work of a timer: what it throws is reported, and does not end the process. */
  readonly contained: (work: () => void) => void;
}

/** Opens a storage. */
export interface StorageEngine {
  /** `memory`, `lmdb`, `redis`, `postgres`, or the name of a storage of your own, for log lines. */
  readonly name: string;
  /** The promise of the storage in one sentence, for the boot line. */
  readonly guarantee: string;
  /** Whether commits outlive the process. */
  readonly durable: boolean;
  /** @throws {@link StorageError} with a hint when the place cannot be used */
  open(context: StorageContext): MaybePromise<Storage>;
}

/**
 * The storage cannot be used. While it is opened it has a hint. Later the outcome of a change is unknown: it may have been
 * made.
 */
export class StorageError extends Error {
  readonly code = 'ERR_DURABLE_JOBS_STORAGE';
  declare readonly problem: string;
  /** How to fix it. */
  declare readonly hint?: string;

  constructor(problem: string, hint?: string) {
    super(hint === undefined ? problem : `${problem}; hint: ${hint}`);
    this.name = 'StorageError';
    Object.defineProperties(this, { problem: { value: problem }, hint: { value: hint } }); // not enumerable
  }
}

export interface PageOptions {
  /** The highest number of rows in memory. @defaultValue 250 */
  readonly size?: number;
  readonly reverse?: boolean;
}

/**
 * All rows of a range, a page at a time. Rows may be changed meanwhile: a row that was there all the time comes once, one
 * that is added may come.
 */
export async function* rangePages(
  storage: StorageView,
  from: string,
  to: string,
  { size = 250, reverse = false }: PageOptions = {},
): AsyncGenerator<readonly StorageRow[]> {
  for (let [first, end] = [from, to]; ;) {
    const rows = await storage.range(first, end, { limit: size, reverse });
    if (rows.length > 0) yield rows;
    const last = rows.at(-1)?.[0];
    if (last === undefined || rows.length < size) return;
    if (reverse) end = last;
    else first = `${last} `; // a blank is the first printable character: no key lies between
  }
}

/** What an engine has for each family of keys. */
export class Families<T> {
  readonly #byName: ReadonlyMap<string, T>;

  constructor(names: readonly string[], make: (name: string) => T) {
    this.#byName = new Map(names.map((name) => [name, make(name)]));
  }

  /** @throws TypeError when the storage was opened without this family */
  get(name: string): T {
    const found = this.#byName.get(name);
    if (found === undefined) throw new TypeError('The storage was opened without the family of this key');
    return found;
  }

  /** Of a key, or of the bounds of a range. */
  of(key: string): T {
    return this.get(key.slice(0, Math.max(0, key.indexOf(':'))));
  }
}
