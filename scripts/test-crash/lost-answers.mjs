import { dueRowsIn, heldIn, renews } from './logout-commits.mjs';
import { wrapEngine } from './wrapped-storage.mjs';

/**
 * A storage that extends holds, and whose answer to it is lost, as a storage may: after a rejection it is unknown whether
 * the commit was made. The row of such a hold is left behind.
 */
export function losingAnswers(engine) {
  return wrapEngine(engine, (storage) => {
    const holds = new Set();
    const commit = async (checks, changes) => {
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
