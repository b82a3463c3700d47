import type { RecordValues, Records } from '../../erasure/records.js';
import type { LmdbFile } from './lmdb-file.js';

/** The erasures in the file of the outbox. */
export class LmdbRecords implements Records {
  readonly #file: LmdbFile;

  constructor(file: LmdbFile) {
    this.#file = file;
  }

  get(keys: readonly string[]): readonly (string | undefined)[] {
    const { records } = this.#file.databases;
    return keys.map((key) => records.get(key));
  }

  range(from: string, to: string, limit: number): readonly (readonly [string, string])[] {
    const rows = this.#file.databases.records.getRange({ start: from, end: to, limit });
    return [...rows].map(({ key, value }) => [key, value]);
  }

  async change(expected: RecordValues, changes: RecordValues): Promise<boolean> {
    const { records } = this.#file.databases;
    const isNew = [...expected].some(([key, value]) => value === undefined && changes.get(key) !== undefined);
    return this.#file.transact(changes.size, isNew, () => {
      for (const [key, value] of expected) if (records.get(key) !== value) return false;
      for (const [key, value] of changes) {
        if (value === undefined) void records.remove(key);
        else void records.put(key, value);
      }
      return true;
    });
  }
}
