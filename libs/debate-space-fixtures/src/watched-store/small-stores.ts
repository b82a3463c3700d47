import session, { Store, type SessionData } from 'express-session';

type Callback<T = unknown> = (error: unknown, result?: T) => void;
type Sessions = Record<string, SessionData>;

/** Keeps its sessions in a private field: a Proxy, a copy or a detached method gets a TypeError. */
export class PrivateFieldStore extends Store {
  readonly #rows = new Map<string, string>();

  override get(sid: string, callback: Callback<SessionData | null>): void {
    setImmediate(callback, null, parsed(this.#rows.get(sid)));
  }
  override all(callback: Callback<Sessions>): void {
    const rows = [...this.#rows].map(([sid, row]) => [sid, parsed(row)]);
    setImmediate(callback, null, Object.fromEntries(rows) as Sessions);
  }
  override length(callback: Callback<number>): void {
    setImmediate(callback, null, this.#rows.size);
  }
  override set(sid: string, session: SessionData, callback?: Callback): void {
    this.#rows.set(sid, JSON.stringify(session));
    this.#done(callback);
  }
  override destroy(sid: string, callback?: Callback): void {
    this.#rows.delete(sid);
    this.#done(callback);
  }
  override clear(callback?: Callback): void {
    this.#rows.clear();
    this.#done(callback);
  }

  #done(callback?: Callback): void {
    if (callback) setImmediate(callback, null);
  }
}

/** Lists rows as its table has them, as better-sqlite3-session-store: the session is text in one of the columns. */
export class RowStore extends session.MemoryStore {
  override all(callback: Callback<never>): void {
    super.all((error, sessions) => {
      const rows = Object.entries(sessions ?? {}).map(([sid, session]) => ({
        sid,
        sess: JSON.stringify(session),
        expire: '2100-01-01T00:00:00.000Z',
      }));
      callback(error, rows as never);
    });
  }
}

/** What a promise library's own promises are. */
class StorePromise<T> extends Promise<T> {}

/** Returns promises of its own kind, and takes callbacks as well. */
export class OwnPromiseStore extends Store {
  readonly rows = new Map<string, string>();

  override get(sid: string, callback?: Callback<SessionData | null>): unknown {
    return this.answer(parsed(this.rows.get(sid)), callback);
  }
  override set(sid: string, session: SessionData, callback?: Callback): unknown {
    this.rows.set(sid, JSON.stringify(session));
    return this.answer('stored', callback);
  }
  override destroy(sid: string, callback?: Callback): unknown {
    return this.answer(this.rows.delete(sid), callback);
  }
  override length(callback?: Callback<number>): unknown {
    return this.answer(this.rows.size, callback);
  }
  override clear(callback?: Callback): unknown {
    this.rows.clear();
    return this.answer(undefined, callback);
  }

  private answer<T>(result: T, callback?: Callback<T>): StorePromise<T> {
    if (callback) setImmediate(callback, null, result);
    return new StorePromise((resolve) => {
      resolve(result);
    });
  }
}

function parsed(row: string | undefined): SessionData | null {
  return row === undefined ? null : (JSON.parse(row) as SessionData);
}

/** An instance of a class that a host derives from a store's class. */
export class CountingMemoryStore extends session.MemoryStore {
  readonly counted: string[] = [];

  override set(...args: Parameters<session.MemoryStore['set']>): void {
    this.counted.push('set');
    super.set(...args);
  }
  override destroy(...args: Parameters<session.MemoryStore['destroy']>): void {
    this.counted.push('destroy');
    super.destroy(...args);
  }
}
