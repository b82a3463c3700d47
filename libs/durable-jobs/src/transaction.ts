import { setTimeout as sleep } from 'node:timers/promises';
import { chain, type MaybePromise } from './maybe-promise.js';
import { type StorageView, type StorageValues, StorageError } from './storage.js';

const MAX_ATTEMPTS = 50;
const FIRST_WAIT_MS = 2;
const MAX_WAIT_MS = 100;

/** Changes that are made together, if all that was read for them is still so. */
export class Transaction {
  readonly #storage: Pick<StorageView, 'get' | 'commit'>;
  readonly #checks = new Map<string, string | undefined>();
  readonly #changes = new Map<string, string | undefined>();
  /** Index rows that are there because their records are. */
  readonly #indexed = new Set<string>();
  readonly #committed: (() => void)[] = [];

  constructor(storage: Pick<StorageView, 'get' | 'commit'>) {
    this.#storage = storage;
  }

  /** @returns the values as this transaction leaves them; what comes from the storage becomes a check */
  async getAll(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    const unknown = [...new Set(keys)].filter((key) => !this.#checks.has(key) && !this.#changes.has(key));
    const values = unknown.length > 0 ? await this.#storage.get(unknown) : [];
    unknown.forEach((key, n) => this.#checks.set(key, values[n]));
    return keys.map((key) => this.#known(key));
  }

  async get(key: string): Promise<string | undefined> {
    return (await this.getAll([key]))[0];
  }

  /** Like {@link getAll}, of records. */
  async readAll<T extends object>(
    type: RecordType<T>,
    keys: readonly string[],
  ): Promise<readonly ReadRecord<T>[]> {
    const texts = await this.getAll(keys);
    return texts.map((text, n) => (text === undefined ? text : readRecord(type, keys[n] ?? '', text)));
  }

  async read<T extends object>(type: RecordType<T>, key: string): Promise<ReadRecord<T>> {
    return (await this.readAll(type, [key]))[0];
  }

  /** A check of what the caller knows without reading; `undefined`: the key must be absent. */
  check(key: string, value: string | undefined): void {
    this.#checks.set(key, value);
  }

  /** Sets a row of no declared type; `undefined` removes it. */
  set(key: string, value: string | undefined): void {
    this.#changes.set(key, value);
  }

  /** Puts a record in place of the one under its key, which is read first if it is not known. */
  async put<T extends object>(type: RecordType<T>, record: T): Promise<void> {
    this.replace(type, await this.read(type, type.key(record)), record);
  }

  /** Removes the record under a key, readable or not, and its index rows. */
  async remove<T extends object>(type: RecordType<T>, key: string): Promise<void> {
    const before = await this.read(type, key);
    if (before) this.replace(type, before, undefined);
  }

  /**
   * Puts a record in place of another, which may have another key, with the index rows of both. Checks nothing.
   * The index rows of one that is unreadable stay: anyone who follows one that leads nowhere removes it.
   */
  replace<T extends object>(type: RecordType<T>, before: ReadRecord<T>, after: T | undefined): void {
    if (before instanceof UnreadableRecord) this.set(before.key, undefined);
    else if (before) this.#remove(type, before);
    if (!after) return;
    this.set(type.key(after), recordText(type, after));
    for (const row of type.indexes(after)) this.set(row, '');
  }

  /** Calls `work` once {@link commit} has made the changes. Must not throw. */
  afterCommit(work: () => void): void {
    this.#committed.push(work);
  }

  /**
   * @returns whether the changes were made; `false`: something that was read has changed. Without changes always `true`.
   * Rejects with a `StorageError` when the storage cannot tell.
   */
  commit(): MaybePromise<boolean> {
    const changes = this.#realChanges();
    const commit = (): MaybePromise<boolean> =>
      changes.size === 0 || this.#storage.commit(this.#checks, changes);
    return chain(commit, (isMade) => {
      if (isMade) for (const work of this.#committed) work();
      return isMade;
    });
  }

  #known(key: string): string | undefined {
    return this.#changes.has(key) ? this.#changes.get(key) : this.#checks.get(key);
  }

  #remove<T extends object>(type: RecordType<T>, record: T): void {
    this.set(type.key(record), undefined);
    for (const row of type.indexes(record)) {
      if (!this.#changes.has(row)) this.#indexed.add(row);
      this.set(row, undefined);
    }
  }

  /** Without those that leave a row as it is. */
  #realChanges(): StorageValues {
    const isThere = (key: string, value: string | undefined) =>
      this.#checks.has(key) ? this.#checks.get(key) === value : value === '' && this.#indexed.has(key);
    return new Map([...this.#changes].filter(([key, value]) => !isThere(key, value)));
  }
}

/**
 * Does the work of a transaction, and again from the beginning while others change what it has read: at most 50 times,
 * with random waits up to 100 ms. The work must have no other effect.
 * @returns what the work has returned, when its changes are made
 * @throws {@link StorageError} after the last attempt, or when the outcome is unknown
 */
export async function transact<T>(
  storage: StorageView,
  work: (transaction: Transaction) => T | Promise<T>,
): Promise<T> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const transaction = new Transaction(storage);
    const result = await work(transaction);
    if (await transaction.commit()) return result;
    await sleep(Math.random() * Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt));
  }
  throw new StorageError(
    `Others have changed the same records ${MAX_ATTEMPTS} times meanwhile; nothing was changed`,
    'repeat the call',
  );
}

/** One kind of record: where it is kept, and which index rows lead to it. The one place that knows both. */
export interface RecordType<T extends object> {
  /** Written with each record, as its field `v`. A record with a higher version is {@link UnreadableRecord} to this one. */
  readonly version: number;

  key(record: T): string;

  /** The keys of its index rows, whose values are empty. A record that changes takes its index rows along. */
  indexes(record: T): readonly string[];

  /** Whether what was read has all that a record of this type or an older version of it needs. */
  isRecord(value: object): value is T;
}

/** A stored text that is no record of its type. It must stop nothing: put it aside with a hint. */
export class UnreadableRecord {
  constructor(
    readonly key: string,
    readonly text: string,
    /** Whether a newer version wrote it; otherwise it is damaged. */
    readonly isNewer: boolean,
  ) {}
}

/** A record that was read, one that cannot be read, or `undefined` where there is none. */
export type ReadRecord<T> = T | UnreadableRecord | undefined;

/** Whether a record is there and can be read. */
export function isReadable<T extends object>(found: ReadRecord<T>): found is T {
  return found !== undefined && !(found instanceof UnreadableRecord);
}

/** Reads a record from the text of its row; a damaged one, or one of a newer version, becomes an {@link UnreadableRecord}. */
export function readRecord<T extends object>(
  type: RecordType<T>,
  key: string,
  text: string,
): T | UnreadableRecord {
  const { v: version, ...record } = objectOf(text);
  const isNewer = typeof version === 'number' && version > type.version;
  // A record that was copied to another key is damage, too.
  if (typeof version !== 'number' || isNewer || !type.isRecord(record) || type.key(record) !== key)
    return new UnreadableRecord(key, text, isNewer);
  return record;
}

/** @returns the text that a storage keeps */
/** The text of a row for a record, which {@link readRecord} reads. */
export function recordText<T extends object>(type: RecordType<T>, record: T): string {
  // Not of a copy with the version: every job is written several times.
  return `{"v":${type.version},${JSON.stringify(record).slice(1)}`;
}

function objectOf(text: string): Partial<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text)) as Partial<Record<string, unknown>>;
  } catch {
    return {};
  }
}
