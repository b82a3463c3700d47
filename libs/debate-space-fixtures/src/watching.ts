import { setImmediate as nextTurn } from 'node:timers/promises';
import { watchSessionEnds } from '../../debate-space/src/session-end/watch-session-ends.js';

export interface Watching {
  /** Has every verdict fall, and says who was reported, and why. The store is not watched any more. */
  ended(): Promise<readonly string[]>;
}

/** Watches a store, without an app around it. @param isSlow whether the listener takes a while */
export function watching(store: object, isSlow: boolean): Watching {
  const reported: string[] = [];
  const watcher = watchSessionEnds(undefined, {
    graceMs: 10,
    onSessionEnd: ({ uid, reason }) => {
      reported.push(`${uid}: ${reason}`);
      return isSlow ? nextTurn() : undefined;
    },
  });
  watcher.watch(store);
  return {
    ended: async () => {
      await watcher.close();
      return reported.toSorted();
    },
  };
}
