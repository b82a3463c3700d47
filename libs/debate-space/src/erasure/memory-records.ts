import * as sortedBTree from 'sorted-btree';
import { defaultExportOf } from '../default-export.js';
import type { RecordValues, Records } from './records.js';

const BTree = defaultExportOf(sortedBTree) as typeof sortedBTree.default.default;

/** Records in this process's memory. */
export class MemoryRecords implements Records {
  readonly #tree = new BTree<string, string>();

  get(keys: readonly string[]): readonly (string | undefined)[] {
    return keys.map((key) => this.#tree.get(key));
  }

  range(from: string, to: string, limit: number): readonly (readonly [string, string])[] {
    const found: (readonly [string, string])[] = [];
    for (const [key, value] of this.#tree.entries(from)) {
      if (key >= to || found.length >= limit) break;
      found.push([key, value]);
    }
    return found;
  }

  change(expected: RecordValues, changes: RecordValues): boolean {
    for (const [key, value] of expected) if (this.#tree.get(key) !== value) return false;
    for (const [key, value] of changes) {
      if (value === undefined) this.#tree.delete(key);
      else this.#tree.set(key, value);
    }
    return true;
  }
}
