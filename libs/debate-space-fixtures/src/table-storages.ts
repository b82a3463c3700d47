import { describe } from '@jest/globals';
import { memoryStorage } from '../../debate-space/src/storage/memory-storage.js';
import type { HostTransaction, StorageEngine } from '../../debate-space/src/storage/storage.js';

/** An engine that the contract runs over. */
export interface TableStorage {
  readonly name: string;
  /** Whether everybody who opens it for an application sees the same rows. */
  readonly isShared: boolean;
  /** `describe`, or a plain word that these tests are skipped for lack of a server. */
  readonly describe: (name: string, tests: () => void) => void;
  /** Always the same place; the first call starts the server. Each test opens applications of its own in it. */
  engine(): Promise<StorageEngine>;
  /** Where storages have `within`: commits what `work` does on a connection of the host's, or rolls it back if it rejects. */
  transaction?(work: (transaction: HostTransaction) => Promise<void>): Promise<void>;
  /** Closes pools, stops the server, removes the files. */
  stop(): Promise<void>;
}

export const tableStorages: readonly TableStorage[] = [
  {
    name: 'memory',
    isShared: false,
    describe,
    engine: () => Promise.resolve(memoryStorage()),
    stop: () => Promise.resolve(),
  },
];
