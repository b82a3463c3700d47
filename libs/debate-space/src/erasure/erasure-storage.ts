import { KeyedMutex } from '../logout/keyed-mutex.js';
import type { DebateSpaceStorage, HostTransaction, StorageView } from '../storage/storage.js';
import { transact } from '../storage/transact.js';
import type { UidCipher } from '../uid-cipher.js';
import { invalid } from './batch-request.js';
import { ErasureChange } from './erasure-change.js';

/** @param isMoreDue whether a reference is due earlier than before */
type ChangeListener = (isMoreDue: boolean) => void;

/** Where the erasures of one application are kept, and how they are changed. */
export class ErasureStorage {
  readonly view: StorageView;
  readonly #storage: DebateSpaceStorage;
  /**
   * Changes of one reference by this process would only be in each other's way. Each transaction of the host's has a mutex
   * of its own: it may be what the next change waits for.
   */
  readonly #mutex = new KeyedMutex();
  readonly #listeners = new Set<ChangeListener>();

  /** @param hosts the same records in a transaction of the host's */
  constructor(
    storage: DebateSpaceStorage,
    readonly uids: UidCipher,
    hosts?: StorageView,
  ) {
    this.#storage = storage;
    this.view = hosts ?? storage;
  }

  /** By the storage's clock: milliseconds. */
  now(): number {
    return this.#storage.now();
  }

  /** How many users' erasures are not finished. */
  async count(): Promise<number> {
    return this.#storage.count('erasureentry');
  }

  /**
   * The same erasures as part of a transaction that the host has open. Errors are those of the host's connection.
   * @throws {@link InvalidArgumentError} when the storage has no transactions of the host's
   */
  within(transaction: HostTransaction): ErasureStorage {
    if (typeof (transaction as Partial<HostTransaction> | null)?.query !== 'function')
      throw invalid('transaction must have a function query(text, values), which runs a statement in the open transaction'); // prettier-ignore
    if (!this.#storage.within)
      throw invalid("transaction: this storage cannot take part in the host's transactions; hint: use postgresStorage on the host's database, or request the erasure without transaction after the commit"); // prettier-ignore
    return new ErasureStorage(this.#storage, this.uids, this.#storage.within(transaction));
  }

  /**
   * Changes erasures atomically. The work is repeated while others change what it reads: it must have no other effect.
   * @param reference the changes of a reference by this process are made in order
   */
  async change<T>(reference: string, work: (change: ErasureChange) => T | Promise<T>): Promise<T> {
    let last: ErasureChange | undefined;
    const make = () =>
      transact(this.view, async (transaction) => {
        const change = (last = new ErasureChange(transaction, this.now()));
        const result = await work(change);
        await change.save();
        return result;
      });
    const result = await this.#mutex.run(reference, make);
    for (const listener of this.#listeners) listener(last?.isMoreDue ?? false);
    return result;
  }

  /** Calls `listener` after each change by this process. @returns how to stop */
  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
