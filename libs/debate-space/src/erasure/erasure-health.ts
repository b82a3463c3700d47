import type { ErasureRegister } from './erasure-register.js';
import type { ErasureStorage } from './erasure-storage.js';

/** What is not finished, for the health check and the shutdown. */
export class ErasureHealth {
  readonly #register: ErasureRegister;
  readonly #storage: ErasureStorage;

  constructor(register: ErasureRegister, storage: ErasureStorage) {
    this.#register = register;
    this.#storage = storage;
  }

  /** @returns the age of the oldest erasure, in milliseconds, when it is overdue; never rejects */
  async overdueMs(): Promise<number | undefined> {
    return this.#register.overdueMs().catch(() => undefined); // the outbox reports a storage that cannot be reached
  }

  /** How many users' erasures are not finished. */
  count(): Promise<number> {
    return this.#storage.count();
  }
}
