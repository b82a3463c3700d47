import { StorageError } from '../errors.js';
import type { Emit } from '../events.js';
import { Containment as Contained } from '../session-end/containment.js';

/**
 * The one way in which code of the plugin runs inside the host's process: listeners, hooks, timers. What fails there becomes
 * the event `fault` and never reaches the host.
 */
export class Containment extends Contained {
  constructor(emit: Emit) {
    super((where, error) => {
      const name = error instanceof Error ? error.name : typeof error;
      const problem = error instanceof StorageError ? { problem: error.problem } : {};
      emit({ type: 'fault', where, error: name, ...problem });
    });
  }
}
