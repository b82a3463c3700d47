import { AsyncResource } from 'node:async_hooks';

/**
 * The async context in which the app booted. Work that the plugin does for itself runs there: in the context of a request it
 * would become part of a transaction that the host keeps in an `AsyncLocalStorage`, and be rolled back with it.
 */
export class BootContext {
  // AsyncLocalStorage.snapshot() would do the same, but is experimental in Node 20.
  readonly #resource = new AsyncResource('DebateSpace', { requireManualDestroy: true });

  /** Whoever awaits the result stays in its own context. */
  run<T>(work: () => T): T {
    return this.#resource.runInAsyncScope(work);
  }
}
