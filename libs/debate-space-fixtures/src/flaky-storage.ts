import type {
  DebateSpaceStorage,
  RangeOptions,
  StorageRow,
  StorageValues,
} from '../../debate-space/src/storage/storage.js';

/** A storage elsewhere, which can be made to fail, to keep silent, or to lose its answers. */
export class FlakyStorage implements DebateSpaceStorage {
  state: 'up' | 'failing' | 'silent' | 'cut off' = 'up';
  readonly working: DebateSpaceStorage;
  readonly #late: (() => void)[] = [];

  constructor(working: DebateSpaceStorage) {
    this.working = working;
  }

  /** From now on, and to what it was asked while silent. */
  answer(): void {
    this.state = 'up';
    for (const work of this.#late.splice(0)) work();
  }

  get(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return this.#answered(async () => this.working.get(keys));
  }

  range(from: string, to: string, options: RangeOptions): Promise<readonly StorageRow[]> {
    return this.#answered(async () => this.working.range(from, to, options));
  }

  count(family: string): Promise<number> {
    return this.#answered(async () => this.working.count(family));
  }

  commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    return this.#answered(async () => this.working.commit(checks, changes));
  }

  now(): number {
    return this.working.now();
  }

  close(): void {
    void this.working.close();
  }

  async #answered<T>(work: () => Promise<T>): Promise<T> {
    await Promise.resolve();
    if (this.state === 'failing') throw new TypeError('out of order');
    if (this.state === 'silent') await new Promise<void>((resolve) => this.#late.push(resolve));
    const result = await work();
    if (this.state === 'cut off') throw new TypeError('the answer was lost');
    return result;
  }
}
