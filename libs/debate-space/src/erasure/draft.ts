import type { Records } from './records.js';

/** A change of records in the making: what it has read must still be so when it is made. */
export class Draft {
  readonly #records: Records;
  readonly #read = new Map<string, string | undefined>();
  readonly #changes = new Map<string, string | undefined>();

  constructor(records: Records) {
    this.#records = records;
  }

  async get<T>(key: string): Promise<T | undefined> {
    const [value] = await this.getAll<T>([key]);
    return value;
  }

  async getAll<T>(keys: readonly string[]): Promise<readonly (T | undefined)[]> {
    const unknown = keys.filter((key) => !this.#read.has(key) && !this.#changes.has(key));
    const values = unknown.length === 0 ? [] : await this.#records.get(unknown);
    unknown.forEach((key, n) => this.#read.set(key, values[n]));
    return keys.map((key) => {
      const text = this.#changes.has(key) ? this.#changes.get(key) : this.#read.get(key);
      return text === undefined ? undefined : (JSON.parse(text) as T);
    });
  }

  /** What has been read of ranges may have changed meanwhile: read the records themselves by {@link get}. */
  put(key: string, value: unknown): void {
    this.#changes.set(key, JSON.stringify(value));
  }

  remove(key: string): void {
    this.#changes.set(key, undefined);
  }

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** @returns whether it was made; if not, somebody was faster */
  async make(): Promise<boolean> {
    return this.isEmpty || this.#records.change(this.#read, this.#changes);
  }
}
