import { strict as assert } from 'node:assert';
import type { Storage, StorageContext, StorageEngine, StorageRow, StorageValues } from '../storage.js';
import type { MaybePromise } from '../maybe-promise.js';

/** The storage to test: how to make an empty place of it, and who sees what is stored there. */
export interface StorageContractSubject {
  /** A new empty place for each call; every `open` of the engine that it returns is of that place. */
  place(): MaybePromise<StorageEngine>;
  /** Whether all who open a place see the same rows. `false` only of a storage that ends with its process. */
  readonly isShared: boolean;
}

/** One test of the contract, for `it(name, run)`. */
export interface StorageContractCase {
  /** A sentence, for `it`. */
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** By name. */
export type ContractCases = Readonly<Record<string, (subject: StorageContractSubject) => Promise<void>>>;

const context: StorageContext = {
  namespace: 'contract',
  families: ['a', 'ab', 'b', 'c'],
  contained: (work) => {
    work();
  },
};

/** Opens one or more storages, and closes them after the case. */
export class OpenedStorages {
  readonly isShared: boolean;
  readonly #engine: StorageEngine;
  readonly #opened: Storage[] = [];

  constructor(engine: StorageEngine, isShared: boolean) {
    this.#engine = engine;
    this.isShared = isShared;
  }

  async open(more: Partial<StorageContext> = {}): Promise<Storage> {
    const storage = await this.#engine.open({ ...context, ...more });
    this.#opened.push(storage);
    return storage;
  }

  async closeAll(): Promise<void> {
    for (const storage of this.#opened) await storage.close();
  }
}

/** A case that needs one storage, or more of the same place. */
export function withStorage(
  run: (storage: Storage, place: OpenedStorages) => Promise<void>,
): (subject: StorageContractSubject) => Promise<void> {
  return async (subject) => {
    const place = new OpenedStorages(await subject.place(), subject.isShared);
    try {
      await run(await place.open(), place);
    } finally {
      await place.closeAll();
    }
  };
}

export const values = (record: Record<string, string | undefined>): StorageValues =>
  new Map(Object.entries(record));

export async function put(storage: Storage, record: Record<string, string>): Promise<void> {
  assert.equal(await storage.commit(new Map(), values(record)), true, 'a commit without checks is made');
}

/** The rows of a family. */
export async function rowsOf(storage: Storage, family: string): Promise<readonly StorageRow[]> {
  return storage.range(`${family}:`, `${family};`, { limit: 10_000 });
}

/** Every row of the contract's families, as an object. */
export async function everything(storage: Storage): Promise<Record<string, string>> {
  const rows = await Promise.all(context.families.map((family) => rowsOf(storage, family)));
  return Object.fromEntries(rows.flat());
}

export const numbered = (count: number, prefix = 'a:'): readonly string[] =>
  Array.from({ length: count }, (_, n) => `${prefix}${String(n).padStart(4, '0')}`);
