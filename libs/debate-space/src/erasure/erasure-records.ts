import type { UidCipher } from '../uid-cipher.js';
import type { LogoutContext } from '../logout/logout.js';
import { Draft } from './draft.js';
import type { Records } from './records.js';

const AT_ONCE = 250;

/** The records of one application: changes one after the other, repeated when another process was faster. */
export class ErasureRecords {
  readonly #uids: UidCipher;
  readonly #records: Records;
  readonly #listeners = new Set<() => void>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(records: Records, { uids }: LogoutContext) {
    this.#records = records;
    this.#uids = uids;
  }

  uidHash(uid: string): string {
    return this.#uids.hash(uid);
  }

  seal(uid: string): string {
    return this.#uids.seal(uid, 'erasure', this.uidHash(uid));
  }

  unseal(sealed: string, uidHash: string): string | undefined {
    return this.#uids.open(sealed, 'erasure', uidHash);
  }

  /** Changes of one process only would get in each other's way: they mostly concern the same reference. */
  change<T>(work: (draft: Draft) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#changed(work));
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** @returns what is there now */
  async get<T>(keys: readonly string[]): Promise<readonly (T | undefined)[]> {
    return new Draft(this.#records).getAll<T>(keys);
  }

  async keys([from, to]: readonly [string, string], limit: number): Promise<readonly string[]> {
    return (await this.#records.range(from, to, limit)).map(([key]) => key);
  }

  /** All records of a range, a few at a time; what is added meanwhile may be among them. */
  async *walk([from, to]: readonly [string, string], atOnce = AT_ONCE): AsyncGenerator<readonly string[]> {
    for (let next = from; ;) {
      const keys = await this.keys([next, to], atOnce);
      if (keys.length > 0) yield keys;
      if (keys.length < atOnce) return;
      next = `${keys.at(-1) ?? ''} `; // no key has a blank, and every character of one comes after it
    }
  }

  /** Called whenever this process has changed something. @returns how to stop */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #changed<T>(work: (draft: Draft) => Promise<T>): Promise<T> {
    for (;;) {
      const draft = new Draft(this.#records);
      const result = await work(draft);
      if (!(await draft.make())) continue;
      if (!draft.isEmpty) for (const listener of this.#listeners) listener();
      return result;
    }
  }
}
