import session from 'express-session';

/** The memory store of express-session, with failures on demand. */
export class FallibleStore extends session.MemoryStore {
  failing: 'destroy' | 'set' | undefined;

  override destroy(sid: string, callback?: (error?: unknown) => void): void {
    if (this.failing === 'destroy') setImmediate(() => callback?.(new Error('the store is down')));
    else super.destroy(sid, callback);
  }

  override set(sid: string, data: session.SessionData, callback?: (error?: unknown) => void): void {
    if (this.failing === 'set') setImmediate(() => callback?.(new Error('the store is down')));
    else super.set(sid, data, callback);
  }
}
