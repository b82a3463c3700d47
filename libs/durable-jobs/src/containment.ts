import { isPromise } from './maybe-promise.js';

/** What runs beside the app's own calls – timers, jobs, their queues – and fails becomes a fault, and never ends the process. */
export class Containment {
  readonly #onFault: (where: string, error: unknown) => void;
  /** A failure while one is reported is that of its listener, and would be reported to it again. */
  #isReporting = false;

  constructor(onFault: (where: string, error: unknown) => void) {
    this.#onFault = onFault;
  }

  /**
   * Runs `work`.
   * @param where names the work in the fault, such as the name of a kind
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
      // Nobody is left who could hear of it.
    } finally {
      this.#isReporting = false;
    }
  }
}
