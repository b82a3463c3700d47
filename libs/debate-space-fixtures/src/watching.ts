import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DebateSpaceEvent } from 'nestjs-debate-space';
import { defaultSessionUid } from '../../debate-space/src/session-end/default-session-uid.js';
import { EndRecorder } from '../../debate-space/src/session-end/verdict/end-recorder.js';
import { SessionEndDetector } from '../../debate-space/src/session-end/platforms/session-end-detector.js';
import { memoryQueue } from './outbox-engines.js';

export interface Watching {
  /** Has every verdict fall, and says who was reported, and why. The store is not watched any more. */
  ended(): Promise<readonly string[]>;
}

/** Watches a store, without an app around it. */
export function watching(store: object, slowOutbox: boolean): Watching {
  const reported: string[] = [];
  const emit = (event: DebateSpaceEvent): void => {
    if (event.type === 'session-ended') reported.push(`${event.uid}: ${event.reason}`);
  };
  const outbox = memoryQueue();
  const add = outbox.add.bind(outbox);
  if (slowOutbox) outbox.add = (entries) => nextTurn().then(() => add(entries));
  const recorder = new EndRecorder(outbox, emit);
  const detector = new SessionEndDetector(recorder, { uid: defaultSessionUid, graceMs: 10 }, emit);
  detector.watch(store);
  return {
    ended: async () => {
      await detector.close();
      return reported.toSorted();
    },
  };
}
