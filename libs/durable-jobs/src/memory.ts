import * as sortedBTree from 'sorted-btree';
import { defaultExportOf } from './default-export.js';
import {
  StorageError,
  Families,
  type Storage,
  type RangeOptions,
  type StorageContext,
  type StorageEngine,
  type StorageRow,
  type StorageValues,
} from './storage.js';
import { MonotonicClock } from './steady-clock.js';

const BTree = defaultExportOf(sortedBTree) as typeof sortedBTree.default.default;

const byBytes = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/**
 * Keeps everything in the memory of this process, for development and tests: each opened storage is empty, and what it
 * has ends with it. It answers synchronously.
 */
export function memoryStorage(): StorageEngine {
  return {
    name: 'memory',
    guarantee: 'what is stored is lost when this process ends',
    durable: false,
    open: (context) => new MemoryStorage(context),
  };
}

/** Rows in the memory of this process, which end with it. */
export class MemoryStorage implements Storage {
  readonly #trees: Families<InstanceType<typeof BTree<string, string>>>;
  readonly #clock = new MonotonicClock();
  #isClosed = false;

  constructor({ families }: Pick<StorageContext, 'families'>) {
    this.#trees = new Families(families, () => new BTree<string, string>(undefined, byBytes));
  }

  get(keys: readonly string[]): readonly (string | undefined)[] {
    this.#assertOpen();
    return keys.map((key) => this.#trees.of(key).get(key));
  }

  range(from: string, to: string, { limit, reverse = false }: RangeOptions): readonly StorageRow[] {
    this.#assertOpen();
    const tree = this.#trees.of(from);
    const rows: StorageRow[] = [];
    for (const row of reverse ? tree.entriesReversed(to, undefined, true) : tree.entries(from)) {
      const isBeyond = reverse ? row[0] < from : row[0] >= to;
      if (isBeyond || rows.length >= limit) break;
      rows.push(row);
    }
    return rows;
  }

  count(family: string): number {
    this.#assertOpen();
    return this.#trees.get(family).size;
  }

  commit(checks: StorageValues, changes: StorageValues): boolean {
    this.#assertOpen();
    for (const [key, value] of checks) if (this.#trees.of(key).get(key) !== value) return false;
    const writes = [...changes].map(([key, value]) => ({ tree: this.#trees.of(key), key, value }));
    for (const { tree, key, value } of writes) {
      if (value === undefined) tree.delete(key);
      else tree.set(key, value);
    }
    return true;
  }

  now(): number {
    return this.#clock.now();
  }

  close(): void {
    this.#isClosed = true;
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new StorageError('The storage is closed');
  }
}
