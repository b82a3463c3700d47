import { openLmdb } from './outbox/lmdb/open-lmdb.js';
import { LmdbOutbox } from './outbox/lmdb/lmdb-outbox.js';
import type { OutboxFactory } from './outbox/outbox.js';

export interface LmdbOutboxOptions {
  /**
   * A folder on a disk of this machine, made when it is missing. Every application has a folder of its own in it, which
   * nobody else may read; several processes may share it. Not a network file system. Uids are encrypted in it, with
   * `storageKey`: LMDB does not wipe what it frees.
   */
  readonly path: string;
}

/**
 * Keeps logouts in a file of this machine: what is recorded survives a crash, kill -9 and power loss. Needs the package
 * `lmdb` (`npm install lmdb`).
 *
 * While the disk is full it takes no new logouts – `hold` rejects with an `OutboxError` – and goes on delivering those it
 * has. Opening rejects with an `OutboxError` that tells the cure: `lmdb` is not installed, `path` is no folder or not
 * writable, the file is damaged or was written by a newer version.
 */
export function lmdbOutbox({ path }: LmdbOutboxOptions): OutboxFactory {
  return {
    open: async (context) => new LmdbOutbox(await openLmdb(path, context.namespace), context),
  };
}
