import { StorageError } from '../errors.js';
import type { OpenStorage, StorageEngine, StorageWarning } from './engine.js';
import type { Storage } from './storage.js';

/** A storage that nothing answered for at the boot: every call rejects until {@link LateStorage.open} succeeds. */
export class LateStorage implements OpenStorage {
  readonly storage: Storage;
  #opened: OpenStorage | undefined;
  #isClosed = false;

  /** @param failure why it could not be opened at the boot */
  constructor(
    private readonly engine: StorageEngine,
    private readonly application: string,
    readonly failure: StorageError,
  ) {
    const call = (name: keyof Storage) => {
      if (this.#opened) {
        const { storage } = this.#opened;
        const operation: unknown = Reflect.get(storage, name);
        return typeof operation === 'function' ? (operation.bind(storage) as unknown) : undefined;
      }
      if (name === 'close') return () => this.#close();
      return () => {
        const { problem, hint } = failure;
        const error = new StorageError(problem, hint, { unreachable: true });
        if (name === 'within') throw error; // the only one that returns no promise
        return Promise.reject(error);
      };
    };
    this.storage = new Proxy({} as Storage, { get: (_target, name) => call(name as keyof Storage) });
  }

  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  get place(): string | undefined {
    return this.#opened?.place;
  }

  get warnings(): readonly StorageWarning[] {
    return this.#opened?.warnings ?? [];
  }

  /** Tries again. @throws {@link StorageError} */
  async open(): Promise<void> {
    if (this.isOpen) return;
    const opened = await this.engine.open(this.application);
    await this.#take(opened);
  }

  async #take(opened: OpenStorage): Promise<void> {
    if (this.#isClosed) await opened.storage.close();
    else this.#opened = opened;
  }

  #close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }
}
