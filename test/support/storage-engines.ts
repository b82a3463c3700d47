import { describe } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lmdbStorage } from '../../libs/debate-space/src/storage/lmdb/lmdb-storage.js';
import { memoryStorage } from '../../libs/debate-space/src/storage/memory-storage.js';
import type { StorageEngine } from '../../libs/debate-space/src/storage/storage.js';

/** A kind of storage that tests run over. */
export interface StorageKind {
  readonly name: string;
  /** Whether all who open a place see the same rows. */
  readonly isShared: boolean;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Starts what the storage needs, once for all tests. */
  start(): Promise<StoragePlaces>;
}

export interface StoragePlaces {
  /** An empty place. What the same engine opens later, or twice, is the same place. */
  place(): StorageEngine;
  stop(): Promise<void>;
}

async function startMemory(): Promise<StoragePlaces> {
  return Promise.resolve({ place: memoryStorage, stop: () => Promise.resolve() });
}

async function startLmdb(): Promise<StoragePlaces> {
  const root = await mkdtemp(join(tmpdir(), 'lmdb-'));
  return {
    place: () => lmdbStorage({ path: mkdtempSync(join(root, 'place-')) }),
    stop: () => rm(root, { recursive: true }),
  };
}

export const storageKinds: readonly StorageKind[] = [
  { name: 'memory', isShared: false, describe, start: startMemory },
  { name: 'lmdb', isShared: true, describe, start: startLmdb },
];
