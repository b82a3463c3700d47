import type { Storage, RangeOptions, StorageRow, StorageValues } from 'durable-jobs';

/** A storage elsewhere, which can be made to be slow, to fail, to keep silent, or to lose its answers. */
export class FlakyStorage implements Storage {
  state: 'up' | 'failing' | 'silent' | 'cut off' = 'up';
  /** How long a call and its answer are under way together. */
  delayMs = 0;
  readonly working: Storage;
  readonly #late: (() => void)[] = [];

  constructor(working: Storage) {
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
    await this.#underWay();
    if (this.state === 'failing') throw new TypeError('out of order');
    if (this.state === 'silent') await new Promise<void>((resolve) => this.#late.push(resolve));
    const result = await work();
    if (this.delayMs > 0) await this.#underWay();
    if (this.state === 'cut off') throw new TypeError('the answer was lost');
    return result;
  }

  async #underWay(): Promise<void> {
    if (this.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, this.delayMs / 2));
  }
}
