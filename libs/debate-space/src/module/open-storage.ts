import { createHash, randomUUID } from 'node:crypto';
import { FORMAT_FAMILY, FormatRow, type Storage } from 'durable-jobs';
import { DebateSpaceOptionsError } from '../errors.js';
import { ERASURE_FAMILIES } from '../erasure/queue/erasure-records.js';
import { optionProblem } from '../options/option-problem.js';
import { QUEUE_FAMILIES } from '../logout/queue/logout-queue.js';
import type { ResolvedOptions } from './resolve-options.js';
import { Secret } from '../secrets/secret.js';
import { ownError } from '../storage-errors.js';
import { openOwn } from './own-storage.js';

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
