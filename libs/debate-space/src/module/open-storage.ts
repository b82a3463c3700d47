import { createHash, randomUUID } from 'node:crypto';
import { DebateSpaceOptionsError } from '../errors.js';
import { optionProblem } from '../options/option-problem.js';
import { Secret } from '../secrets/secret.js';
import type { OpenStorage } from '../storage/storage.js';
import type { ResolvedOptions } from './resolve-options.js';

const UNDELIVERED = optionProblem(
  'worker',
  'is false, and nobody would ever deliver what is in memory',
  'give a storage that a delivering process shares',
);
const KEYLESS = optionProblem('storageKey', 'is missing: this storage keeps uids, encrypted under it');

export interface OpenedStorage extends OpenStorage {
  /** Of the uids in it. The first one encrypts and hashes, all of them decrypt and find. */
  readonly keys: readonly Secret[];
}

/**
 * Opens the storage of an application.
 * @throws {@link StorageError} when the place cannot be used
 * @throws {@link DebateSpaceOptionsError} when the options do not go with the storage
 */
export async function openStorage({
  storage: engine,
  storageKey,
  applicationName,
  worker,
}: ResolvedOptions): Promise<OpenedStorage> {
  if (!engine.durable && !worker) throw new DebateSpaceOptionsError([UNDELIVERED]);
  const opened = await engine.open(applicationKey(applicationName));
  // The storage's own key is the last one: an application that brings a key still reads what is there.
  const own = opened.key ?? (engine.durable || storageKey.length > 0 ? undefined : randomUUID());
  const keys = new Set(storageKey.map((key) => key.reveal()));
  if (own !== undefined) keys.add(own);
  if (keys.size > 0) return { ...opened, keys: [...keys].map((key) => new Secret(key)) };
  await opened.storage.close();
  throw new DebateSpaceOptionsError([KEYLESS]);
}

/** The name of the application, so that a rotated key hides nothing; one of other characters has a hash at its end. */
export function applicationKey(applicationName: string): string {
  if (/^[\w-]{1,64}$/.test(applicationName)) return applicationName;
  const hash = createHash('sha256').update(applicationName).digest('base64url').slice(0, 16);
  return `${applicationName.replace(/[^\w-]/g, '_').slice(0, 32)}-${hash}`;
}
