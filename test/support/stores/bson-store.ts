import { BSON } from 'bson';
import session, { type SessionData } from 'express-session';

type Done = (error?: unknown) => void;
type Found<Value> = (error: unknown, found?: Value | null) => void;

/** Keeps sessions as MongoDB does – as connect-mongo with `stringify: false` –: an ObjectId comes back as an ObjectId. */
export class BsonStore extends session.Store {
  readonly #rows = new Map<string, Uint8Array>();

  override get(sid: string, callback: Found<SessionData>): void {
    const row = this.#rows.get(sid);
    setImmediate(() => {
      callback(null, row && alive(BSON.deserialize(row) as SessionData));
    });
  }

  override set(sid: string, data: SessionData, callback?: Done): void {
    const cookie = (data.cookie as { toJSON?: () => object }).toJSON?.() ?? data.cookie;
    this.#rows.set(sid, BSON.serialize({ ...data, cookie }, { ignoreUndefined: true }));
    setImmediate(() => callback?.(null));
  }

  override touch(sid: string, data: SessionData, callback?: Done): void {
    const row = this.#rows.get(sid);
    const { cookie } = data;
    if (row) this.set(sid, { ...BSON.deserialize(row), cookie }, callback);
    else setImmediate(() => callback?.(null));
  }

  override destroy(sid: string, callback?: Done): void {
    this.#rows.delete(sid);
    setImmediate(() => callback?.(null));
  }

  override clear(callback?: Done): void {
    this.#rows.clear();
    setImmediate(() => callback?.(null));
  }

  override all(callback: Found<Record<string, SessionData>>): void {
    const all = [...this.#rows].map(([sid, row]) => [sid, BSON.deserialize(row) as SessionData] as const);
    setImmediate(() => {
      callback(null, Object.fromEntries(all));
    });
  }
}

/** The session, unless it has run out. */
function alive(data: SessionData): SessionData | undefined {
  const { expires } = data.cookie as { expires?: Date | string | null };
  return expires && new Date(expires).getTime() <= Date.now() ? undefined : data;
}
