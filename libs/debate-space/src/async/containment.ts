import { StorageError } from '../errors.js';
import type { Emit } from '../events.js';
import { isPromise } from './promises.js';

/**
 * The one way in which code of the plugin runs inside the host's process: listeners, setters, wrapped methods, hooks, timers.
 * A failure there becomes a fault and never reaches the host.
 */
export class Containment {
  readonly #onFault: (where: string, error: unknown) => void;
  /** A failure while one is reported is that of its listener, and would be reported to it again. */
  #isReporting = false;

  constructor(onFault: (where: string, error: unknown) => void) {
    this.#onFault = onFault;
  }

  /**
   * Runs `work`.
   * @param where names the work in the fault, such as `store.destroy`
   * @returns what it returns; `otherwise` when it throws. A promise that it returns resolves to `otherwise` instead of
   * rejecting
   */
  run<T>(where: string, work: () => T, otherwise: Awaited<T>): T;
  run(where: string, work: () => unknown): void;
  run(where: string, work: () => unknown, otherwise?: unknown): unknown {
    try {
      const result = work();
      if (!isPromise(result)) return result;
      return result.then(undefined, (error: unknown) => {
        this.report(where, error);
        return otherwise;
      });
    } catch (error) {
      this.report(where, error);
      return otherwise;
    }
  }

  /** Reports a failure. Never throws. */
  report(where: string, error: unknown): void {
    if (this.#isReporting) return;
    this.#isReporting = true;
    try {
      this.#onFault(where, error);
    } catch {
      // The listener has failed as well: there is no other one.
    } finally {
      this.#isReporting = false;
    }
  }
}

/** Emits each failure as the event `fault`. */
export function faultsTo(emit: Emit): (where: string, error: unknown) => void {
  return (where, error) => {
    const name = error instanceof Error ? error.name : typeof error;
    const problem = error instanceof StorageError ? { problem: error.problem } : {};
    emit({ type: 'fault', where, error: name, ...problem });
  };
}
