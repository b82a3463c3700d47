import session, { type SessionData } from 'express-session';
import { alive } from './session-alive.js';

type Done = (error?: unknown) => void;
type Found<Value> = (error: unknown, found?: Value | null) => void;

/** A store whose methods go by `this.prefix`, so that one may be derived from another with `Object.create`. */
export class PrefixedStore extends session.Store {
  readonly prefix: string = 'sessions:';
  readonly rows = new Map<string, string>();

  /** A store with a prefix of its own, on the same rows. */
  derived(prefix: string): PrefixedStore {
    return Object.create(this, { prefix: { value: prefix, enumerable: true } }) as PrefixedStore;
  }

  override get(sid: string, callback: Found<SessionData>): void {
    const row = this.rows.get(this.prefix + sid);
    setImmediate(() => {
      callback(null, row === undefined ? undefined : alive(JSON.parse(row) as SessionData));
    });
  }

  override set(sid: string, data: SessionData, callback?: Done): void {
    this.rows.set(this.prefix + sid, JSON.stringify(data));
    setImmediate(() => callback?.(null));
  }

  override destroy(sid: string, callback?: Done): void {
    this.rows.delete(this.prefix + sid);
    setImmediate(() => callback?.(null));
  }

  override clear(callback?: Done): void {
    for (const [key] of ownRows(this)) this.rows.delete(key);
    setImmediate(() => callback?.(null));
  }

  override all(callback: Found<Record<string, SessionData>>): void {
    const all = ownRows(this).map(
      ([key, row]) => [key.slice(this.prefix.length), JSON.parse(row) as SessionData] as const,
    );
    setImmediate(() => {
      callback(null, Object.fromEntries(all));
    });
  }
}

/** No private method: a derived store does not have it. */
function ownRows({ rows, prefix }: PrefixedStore): (readonly [string, string])[] {
  return [...rows].filter(([key]) => key.startsWith(prefix));
}
