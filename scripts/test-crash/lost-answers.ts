import type { StorageEngine } from 'nestjs-debate-space';
import { dueRowsIn, heldIn, renews } from './logout-commits.js';
import { wrapEngine, type Commit } from './wrapped-storage.js';

/**
 * A storage that extends holds, and whose answer to it is lost, as a storage may: after a rejection it is unknown whether
 * the commit was made. The row of such a hold is left behind.
 */
export function losingAnswers(engine: StorageEngine): StorageEngine {
  return wrapEngine(engine, (storage) => {
    const holds = new Set<string>();
    const commit: Commit = async (checks, changes) => {
      const held = heldIn(checks);
      if (held !== undefined && checks.get(held) === undefined)
        for (const row of dueRowsIn(changes)) holds.add(row);
      const isExtension = renews(checks, holds);
      const isMade = await storage.commit(checks, changes);
      if (isExtension) throw new Error('the answer is lost');
      return isMade;
    };
    return { commit };
  });
}
