import type { StorageEngine } from '../storage.js';
import { openLmdb } from './open-lmdb.js';

export interface LmdbStorageOptions {
  /**
   * A folder on a disk of this machine, made when it is missing; not a network file system. Each application has a folder
   * of its own in it, readable by its user only (0700), which several processes may share. The file `storage-key` in there
   * (0600) encrypts uids unless the option `storageKey` is given, and is the last key beside it: a backup needs both.
   */
  readonly path: string;
}

/**
 * Keeps everything in a file of this machine: commits survive a crash, kill -9 and power loss. Needs the package `lmdb`.
 * While the disk is full, commits that add records reject with a `StorageError`; those that finish work go on. Opening
 * rejects with one when `lmdb` is not installed, `path` is no folder or not writable, or the file in it is damaged or of
 * another format.
 */
export function lmdbStorage({ path }: LmdbStorageOptions): StorageEngine {
  return {
    name: 'lmdb',
    guarantee: 'what is stored survives a crash, kill -9 and power loss of this machine',
    durable: true,
    open: (context) => openLmdb(path, context),
  };
}
