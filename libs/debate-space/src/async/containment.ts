import { isPromise } from './maybe-promise.js';
import { StorageError } from '../errors.js';
import type { Emit } from '../events.js';

/** Reports what libraries below have contained, as this plugin reports its own: as the event `fault`. */
export function faultEvents(emit: Emit): (where: string, error: unknown) => void {
  const containment = new Containment(emit);
  return containment.report.bind(containment);
}

/**
 * The one way in which code of the plugin runs inside the host's process: listeners, setters, wrapped methods, hooks,
 * timers. What fails there becomes the event `fault` and never reaches the host.
 */
export class Containment {
  readonly #emit: Emit;
  /** A failure while one is reported is that of a listener, and would be reported to it again. */
  #isReporting = false;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /**
   * Runs `work`.
   * @param where names the work in the event, such as `store.destroy`
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
      const name = error instanceof Error ? error.name : typeof error;
      const problem = error instanceof StorageError ? { problem: error.problem } : {};
      this.#emit({ type: 'fault', where, error: name, ...problem });
    } catch {
      // Nobody is left who could hear of it.
    } finally {
      this.#isReporting = false;
    }
  }
}
