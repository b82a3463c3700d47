import { AsyncResource } from 'node:async_hooks';
import type { SessionData } from 'express-session';
import { FallibleStore } from './fallible-store.js';

type Callback<Rest extends unknown[] = []> = (error?: unknown, ...rest: Rest) => void;

/** As behind a connection that is shared: its driver calls back in the async context of the call before, another request's. */
export class ConnectionStore extends FallibleStore {
  #last = new AsyncResource('connection');

  override get(sid: string, callback: (error: unknown, data?: SessionData | null) => void): void {
    super.get(sid, this.#elsewhere(callback) ?? callback);
  }
  override set(sid: string, data: SessionData, callback?: Callback): void {
    super.set(sid, data, this.#elsewhere(callback));
  }
  override destroy(sid: string, callback?: Callback): void {
    super.destroy(sid, this.#elsewhere(callback));
  }

  #elsewhere<Args extends unknown[]>(
    callback: ((...args: Args) => void) | undefined,
  ): ((...args: Args) => void) | undefined {
    const last = this.#last;
    this.#last = new AsyncResource('call');
    return (
      callback &&
      ((...args) => {
        last.runInAsyncScope(callback, undefined, ...args);
      })
    );
  }
}
