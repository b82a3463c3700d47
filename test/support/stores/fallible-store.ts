import session from 'express-session';

type FallibleOperation = 'get' | 'set' | 'destroy';

/** The memory store of express-session, with failures on demand. */
export class FallibleStore extends session.MemoryStore {
  #failing: FallibleOperation | undefined;
  #times = 0;

  /** Has the next calls of this operation fail. */
  fail(operation: FallibleOperation, times = 1): void {
    this.#failing = operation;
    this.#times = times;
  }

  override get(sid: string, callback: (error: unknown, data?: session.SessionData | null) => void): void {
    if (this.#fails('get'))
      setImmediate(() => {
        callback(new Error('the store is down'));
      });
    else super.get(sid, callback);
  }

  override destroy(sid: string, callback?: (error?: unknown) => void): void {
    if (this.#fails('destroy')) setImmediate(() => callback?.(new Error('the store is down')));
    else super.destroy(sid, callback);
  }

  override set(sid: string, data: session.SessionData, callback?: (error?: unknown) => void): void {
    if (this.#fails('set')) setImmediate(() => callback?.(new Error('the store is down')));
    else super.set(sid, data, callback);
  }

  #fails(operation: FallibleOperation): boolean {
    if (this.#failing !== operation || this.#times === 0) return false;
    this.#times -= 1;
    return true;
  }
}
