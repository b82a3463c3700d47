import type { Database, RootDatabase } from 'lmdb';
import { OutboxError } from '../../errors.js';
import type { LmdbDatabases } from './lmdb-databases.js';
import { writeError } from './lmdb-errors.js';
import type { ReservedSpace } from './reserved-space.js';

interface RootStats {
  readonly lastPageNumber: number;
  readonly pageSize: number;
}

/** So many records need no more space than the change of one entry in several trees: each is in one. */
const RECORDS_PER_CHANGE = 4;

/** The open file. Nothing reaches LMDB once it is closed: that would not be an error but the end of the process. */
export class LmdbFile {
  readonly #folder: string;
  readonly #root: RootDatabase;
  readonly #databases: LmdbDatabases;
  readonly #space: ReservedSpace;
  readonly #writes = new Set<Promise<boolean>>();
  #closed: Promise<void> | undefined;

  constructor(folder: string, root: RootDatabase, databases: LmdbDatabases, space: ReservedSpace) {
    this.#folder = folder;
    this.#root = root;
    this.#databases = databases;
    this.#space = space;
  }

  /** @throws {OutboxError} when it is closed */
  get databases(): LmdbDatabases {
    if (this.#closed) throw new OutboxError(`The outbox in ${this.#folder} is closed`);
    return this.#databases;
  }

  /**
   * Makes a change if the key still has this version – `undefined`: if there is no such key –, all of it or nothing, and
   * together with whatever else is to be written at the moment.
   * @returns whether it was made, when it is on the disk
   */
  async write<V>(
    database: Database<V, string>,
    key: string,
    version: number | undefined,
    change: () => void,
  ): Promise<boolean> {
    const commit = () =>
      version === undefined ? database.ifNoExists(key, change) : database.ifVersion(key, version, change);
    return this.#commit(commit, version === undefined);
  }

  /** Makes a change whatever there is. */
  async writeAnyhow(change: () => void): Promise<void> {
    await this.#commit(() => this.#root.batch(change), false);
  }

  /**
   * Makes a change that reads what it depends on when nobody else can write.
   * @param records how many it writes at most
   * @param isNew whether it brings something new; what ends something may use the space that is kept in reserve
   * @returns what it returns, when it is on the disk
   */
  async transact(records: number, isNew: boolean, change: () => boolean): Promise<boolean> {
    const places = Math.ceil(records / RECORDS_PER_CHANGE);
    return this.#commit(() => this.#root.transaction(change), isNew, places);
  }

  /** Waits for what is being written. */
  close(): Promise<void> {
    this.#closed ??= Promise.allSettled(this.#writes).then(() => this.#root.close());
    return this.#closed;
  }

  async #commit(commit: () => Promise<boolean>, isNew: boolean, changes = 1): Promise<boolean> {
    let committed: Promise<boolean> | undefined;
    try {
      if (this.#closed) throw new OutboxError(`The outbox in ${this.#folder} is closed`);
      const { lastPageNumber, pageSize } = this.#root.getStats() as RootStats;
      this.#space.ensure((lastPageNumber + 1) * pageSize, this.#writes.size + changes, isNew);
      committed = commit();
      this.#writes.add(committed);
      return await committed;
    } catch (error) {
      throw await writeError(this.#folder, error);
    } finally {
      if (committed) this.#writes.delete(committed);
    }
  }
}
