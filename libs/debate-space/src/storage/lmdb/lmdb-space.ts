import type { Database, RootDatabase } from 'lmdb';
import { StorageError } from '../../errors.js';
import type { Families } from '../families.js';
import { MonotonicClock } from '../monotonic-clock.js';
import type { DebateSpaceStorage, RangeOptions, StorageRow, StorageValues } from '../storage.js';
import { NOTE_MS, type StoredClock } from './lmdb-clock.js';
import { causeOf, storageError } from './lmdb-errors.js';
import { bytesFor, type ReservedSpace } from './reserved-space.js';

/** `rows`: a database per family, of which LMDB knows how many rows it has. `meta`: the format and the clock. */
interface LmdbFile {
  readonly folder: string;
  readonly root: RootDatabase;
  readonly rows: Families<Database<string, string>>;
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
  #seen: number;
  #closed: Promise<void> | undefined;

  constructor(file: LmdbFile) {
    this.key = file.key;
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
    const rows = this.#read((file) => [...file.rows.of(from).getRange({ ...bounds, limit })]);
    return rows.map(({ key, value }) => [key, value]);
  }

  count(family: string): number {
    return this.#read(({ rows }) => rows.get(family).getStats() as { entryCount: number }).entryCount;
  }

  async commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    const read = this.#located(checks);
    const written = this.#located(changes);
    const isNew = written.some(({ key, value }) => value !== undefined && checks.get(key) === undefined && checks.has(key)); // prettier-ignore
    const seen = this.now();
    const isNoted = seen < this.#seen + NOTE_MS;
    const isMade = await this.#transact(bytesFor(changes), isNew, () => {
      for (const { database, key, value } of read) if (database.get(key) !== value) return false;
      for (const { database, key, value } of written) {
        void (value === undefined ? database.remove(key) : database.put(key, value));
      }
      if (!isNoted) void this.#file.meta.put('clock', { ...this.#file.clock, seen }, 1);
      return true;
    });
    if (isMade && !isNoted) this.#seen = seen;
    return isMade;
  }

  now(): number {
    return this.#clock.now();
  }

  close(): Promise<void> {
    return (this.#closed ??= Promise.allSettled(this.#commits).then(() => this.#file.root.close()));
  }

  /** Throws before the transaction: LMDB would keep what came before a key that it refuses. */
  #located(values: StorageValues) {
    return [...values].map(([key, value]) => {
      if (key.length > 1_500) throw new TypeError('A key of a storage has at most 1,500 characters');
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
