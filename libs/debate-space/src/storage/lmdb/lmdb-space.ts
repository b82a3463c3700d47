import type { Database, RootDatabase } from 'lmdb';
import { StorageError } from '../../errors.js';
import type { Families } from '../families.js';
import { MonotonicClock } from '../monotonic-clock.js';
import type { DebateSpaceStorage, RangeOptions, StorageRow, StorageValues } from '../storage.js';
import { NOTE_MS, type StoredClock } from './lmdb-clock.js';
import { causeOf, storageError } from './lmdb-errors.js';
import { bytesFor, type ReservedSpace } from './reserved-space.js';

/** LMDB refuses longer keys in the middle of a transaction, and keeps what came before them. */
const MAX_KEY = 1_500;

interface LmdbFile {
  readonly folder: string;
  readonly root: RootDatabase;
  /** One database per family: LMDB knows how many rows each has. */
  readonly rows: Families<Database<string, string>>;
  /** The format and the clock. */
  readonly meta: Database<unknown, string>;
  readonly clock: StoredClock;
  readonly space: ReservedSpace;
  readonly key: string;
}

/** An open file. Nothing reaches LMDB after {@link close}: LMDB would end the process. */
export class LmdbSpace implements DebateSpaceStorage {
  readonly key: string;
  readonly #file: LmdbFile;
  readonly #clock: MonotonicClock;
  readonly #commits = new Set<Promise<boolean>>();
  /** What the open commits may need. */
  #bytes = 0;
  #notedAt: number;
  #closed: Promise<void> | undefined;

  constructor(file: LmdbFile) {
    this.key = file.key;
    this.#file = file;
    this.#clock = new MonotonicClock(file.clock.offset);
    this.#notedAt = file.clock.seen;
  }

  get(keys: readonly string[]): readonly (string | undefined)[] {
    return this.#read(({ rows }) => keys.map((key) => rows.of(key).get(key)));
  }

  range(from: string, to: string, { limit, reverse }: RangeOptions): readonly StorageRow[] {
    const bounds = reverse
      ? { start: to, end: from, exclusiveStart: true, inclusiveEnd: true, reverse }
      : { start: from, end: to };
    return this.#read(({ rows }) => {
      const found = rows.of(from).getRange({ ...bounds, limit });
      return [...found].map(({ key, value }) => [key, value] as const);
    });
  }

  count(family: string): number {
    const stats = this.#read(({ rows }) => rows.get(family).getStats());
    return (stats as { entryCount: number }).entryCount;
  }

  async commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    const read = this.#located(checks);
    const written = this.#located(changes);
    const isNew = written.some(({ key, value }) => value !== undefined && checks.get(key) === undefined && checks.has(key)); // prettier-ignore
    const seen = this.now();
    const isNoted = seen < this.#notedAt + NOTE_MS;
    const isMade = await this.#transact(bytesFor(changes), isNew, () => {
      for (const { database, key, value } of read) if (database.get(key) !== value) return false;
      for (const { database, key, value } of written) {
        void (value === undefined ? database.remove(key) : database.put(key, value));
      }
      if (!isNoted) void this.#file.meta.put('clock', { ...this.#file.clock, seen }, 1);
      return true;
    });
    if (isMade && !isNoted) this.#notedAt = seen;
    return isMade;
  }

  now(): number {
    return this.#clock.now();
  }

  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#commits).then(() => this.#file.root.close());
    return this.#closed;
  }

  /** Throws before the transaction, which LMDB would not undo. */
  #located(values: StorageValues) {
    return [...values].map(([key, value]) => {
      if (key.length > MAX_KEY) throw new TypeError(`A key of a storage has at most ${MAX_KEY} characters`);
      return { database: this.#file.rows.of(key), key, value };
    });
  }

  /** The change holds the lock of the file: it must be short. */
  async #transact(bytes: number, isNew: boolean, change: () => boolean): Promise<boolean> {
    this.#assertOpen();
    const { folder, root, space } = this.#file;
    let commit: Promise<boolean> | undefined;
    this.#bytes += bytes;
    try {
      const { lastPageNumber, pageSize } = root.getStats() as Record<'lastPageNumber' | 'pageSize', number>;
      space.ensure((lastPageNumber + 1) * pageSize, this.#bytes, isNew);
      commit = root.transaction(change);
      this.#commits.add(commit);
      return await commit;
    } catch (error) {
      throw storageError(`The storage in ${folder} could not be written`, await causeOf(error));
    } finally {
      this.#bytes -= bytes;
      if (commit) this.#commits.delete(commit);
    }
  }

  #read<T>(look: (file: LmdbFile) => T): T {
    this.#assertOpen();
    try {
      this.#file.root.resetReadTxn(); // or this turn would not see what another process has committed
      return look(this.#file);
    } catch (error) {
      throw storageError(`The storage in ${this.#file.folder} could not be read`, error);
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new StorageError(`The storage in ${this.#file.folder} is closed`);
  }
}
