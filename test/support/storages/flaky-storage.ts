import { StorageError } from '../../../libs/debate-space/src/errors.js';
import type { StorageEngine } from '../../../libs/debate-space/src/storage/engine.js';
import type { Storage } from '../../../libs/debate-space/src/storage/storage.js';

/** How long a silent storage is waited for, in milliseconds. */
const TIMEOUT_MS = 1_000;

/** `cut off`: the storage does what it was called for, and its answer is lost. */
export type Outage = 'failing' | 'silent' | 'cut off';

/** A storage that a test takes away, and gives back. */
export class FlakyStorage {
  state: 'up' | Outage = 'up';
  readonly #waiting: (() => void)[] = [];

  /** The same engine, whose storages are away with this one. */
  engineWith(engine: StorageEngine): StorageEngine {
    return replacing(engine, (storage) => this.over(storage));
  }

  /** The same storage, as long as this one is up. */
  over(storage: Storage): Storage {
    return new Proxy(storage, {
      get: (_, name) => {
        const operation: unknown = Reflect.get(storage, name);
        if (typeof operation !== 'function') return operation;
        const work = operation.bind(storage) as (...args: unknown[]) => unknown;
        if (name === 'close' || name === 'within') return work;
        return (...args: unknown[]) => this.#answered(() => work(...args));
      },
    });
  }

  /** It is up again, and executes the calls that came while it was silent. */
  answer(): void {
    this.state = 'up';
    for (const work of this.#waiting.splice(0)) work();
  }

  async #answered(work: () => unknown): Promise<unknown> {
    if (this.state === 'failing') throw new StorageError('The storage is away (ECONNREFUSED)', 'wait');
    if (this.state === 'silent') await this.#heard();
    const result = await work();
    if (this.state === 'cut off') throw new StorageError('The storage is away (ECONNRESET)', 'wait');
    return result;
  }

  #heard(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new StorageError('The storage is away (no answer)', 'wait'));
      }, TIMEOUT_MS);
      this.#waiting.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/** An engine some of whose operations are the test's. @param replaced is given the storage as it was opened */
export function replacing(
  engine: StorageEngine,
  replaced: (storage: Storage) => Partial<Storage>,
): StorageEngine {
  return {
    ...engine,
    open: async (application) => {
      const opened = await engine.open(application);
      const own = replaced(opened.storage);
      const storage = new Proxy(opened.storage, {
        get: (whole, name) => {
          const place = name in own ? own : whole;
          const operation: unknown = Reflect.get(place, name);
          return typeof operation === 'function' ? (operation.bind(place) as unknown) : operation;
        },
      });
      return { ...opened, storage };
    },
  };
}
