import {
  type HostTransaction,
  type RangeOptions,
  type Storage,
  type StorageContext,
  type StorageEngine,
  type StorageRow,
  type StorageValues,
  type StorageView,
  type StorageWarning,
  FORMAT_FAMILY,
  FormatRow,
} from 'durable-jobs';
import { chain, type MaybePromise } from '../async/maybe-promise.js';
import { ownError, DebateSpaceOptionsError } from '../errors.js';
import { createHash, randomUUID } from 'node:crypto';
import { ERASURE_FAMILIES } from '../erasure/queue/erasure-records.js';
import { optionProblem } from '../options/option-problem.js';
import { QUEUE_FAMILIES } from '../logout/queue/logout-queue.js';
import type { ResolvedOptions } from './resolve-options.js';
import { Secret } from '../secrets/secret.js';

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

const FAMILIES = [...QUEUE_FAMILIES, ...ERASURE_FAMILIES, 'rate', 'session', FORMAT_FAMILY];
const UNDELIVERED = optionProblem(
  'worker',
  'is false, and nobody would ever deliver what is in memory',
  'give a storage that a delivering process shares',
);
const KEYLESS = optionProblem('storageKey', 'is missing: this storage keeps uids, encrypted under it');

export interface OpenStorage {
  readonly storage: Storage;
  /** Of the uids in it. The first one encrypts and hashes, all of them decrypt and find. */
  readonly keys: readonly Secret[];
  readonly format: FormatRow;
}

/**
 * Opens the storage of an application.
 * @throws {@link StorageError} when the place cannot be used
 * @throws {@link DebateSpaceOptionsError} when the options do not go with the storage
 */
export async function openStorage(
  { storage: engine, storageKey, applicationName, worker }: ResolvedOptions,
  contained: (work: () => void) => void,
): Promise<OpenStorage> {
  if (!engine.durable && !worker) throw new DebateSpaceOptionsError([UNDELIVERED]);
  const namespace = namespaceOf(applicationName);
  const storage = await openOwn(engine, { namespace, families: FAMILIES, contained });
  try {
    // The storage's own key is the last one: an application that brings a key still reads what is there.
    const own = storage.key ?? (engine.durable || storageKey.length > 0 ? undefined : randomUUID());
    const keys = new Set(storageKey.map((key) => key.reveal()));
    if (own !== undefined) keys.add(own);
    if (keys.size === 0) throw new DebateSpaceOptionsError([KEYLESS]);
    const format = await FormatRow.open(storage);
    return { storage, keys: [...keys].map((key) => new Secret(key)), format };
  } catch (error) {
    await storage.close();
    throw ownError(error);
  }
}

/** The name of the application, so that a rotated key hides nothing; one of other characters has a hash at its end. */
export function namespaceOf(applicationName: string): string {
  if (/^[\w-]{1,64}$/.test(applicationName)) return applicationName;
  const hash = createHash('sha256').update(applicationName).digest('base64url').slice(0, 16);
  return `${applicationName.replace(/[^\w-]/g, '_').slice(0, 32)}-${hash}`;
}
