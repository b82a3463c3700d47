import type {
  HostTransaction,
  RangeOptions,
  Storage,
  StorageContext,
  StorageEngine,
  StorageRow,
  StorageValues,
  StorageView,
  StorageWarning,
} from 'durable-jobs';
import { chain, type MaybePromise } from '../async/maybe-promise.js';
import { ownError } from '../storage-errors.js';

/** Opens a storage whose every failure is the `StorageError` of this package, however the engine calls it. */
export async function openOwn(engine: StorageEngine, context: StorageContext): Promise<Storage> {
  return new OwnStorage(await owning(() => engine.open(context)));
}

/** What the call returns or throws; synchronous where the call is. */
function owning<T>(call: () => T): T {
  const asItIs = (value: unknown): unknown => value;
  const rethrow = (error: unknown): never => {
    throw ownError(error);
  };
  return chain<unknown, unknown>(call, asItIs, rethrow) as T;
}

class OwnView implements StorageView {
  constructor(private readonly view: StorageView) {}

  get(keys: readonly string[]): MaybePromise<readonly (string | undefined)[]> {
    return owning(() => this.view.get(keys));
  }

  range(from: string, to: string, options: RangeOptions): MaybePromise<readonly StorageRow[]> {
    return owning(() => this.view.range(from, to, options));
  }

  commit(checks: StorageValues, changes: StorageValues): MaybePromise<boolean> {
    return owning(() => this.view.commit(checks, changes));
  }
}

class OwnStorage extends OwnView implements Storage {
  /** Absent where the storage has no transactions of the host's. */
  readonly within?: (transaction: HostTransaction) => StorageView;

  constructor(private readonly storage: Storage) {
    super(storage);
    const within = storage.within?.bind(storage);
    if (within) this.within = (transaction) => new OwnView(owning(() => within(transaction)));
  }

  get warnings(): readonly StorageWarning[] | undefined {
    return this.storage.warnings;
  }

  get place(): string | undefined {
    return this.storage.place;
  }

  get wasEmptied(): boolean | undefined {
    return this.storage.wasEmptied;
  }

  get key(): string | undefined {
    return this.storage.key;
  }

  count(family: string): MaybePromise<number> {
    return owning(() => this.storage.count(family));
  }

  now(): number {
    return this.storage.now();
  }

  close(): MaybePromise<void> {
    return owning(() => this.storage.close());
  }
}
