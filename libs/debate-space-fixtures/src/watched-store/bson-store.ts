import { deserialize, ObjectId, serialize } from 'bson';
import { Store, type SessionData } from 'express-session';

type Callback<T = unknown> = (error: unknown, result?: T) => void;

/**
 * Keeps sessions as BSON, as connect-mongo with `stringify: false`: an ObjectId stays one, a row has its own `_id`, `all`
 * gives sessions without ids, no method returns anything, and each emits an event on `this`.
 */
export class BsonStore extends Store {
  readonly collection = new Map<string, Uint8Array>();

  override get(sid: string, callback: Callback<SessionData | null>): void {
    this.#answer(callback, () => this.#read(this.collection.get(sid)));
  }
  override all(callback: Callback<SessionData[]>): void {
    this.#answer(callback, () => [...this.collection.values()].flatMap((row) => this.#read(row) ?? []));
  }
  override length(callback: Callback<number>): void {
    this.#answer(callback, () => this.collection.size);
  }
  override set(sid: string, session: SessionData, callback?: Callback): void {
    this.#answer(callback, () => {
      const { cookie, ...data } = session;
      this.collection.set(
        sid,
        serialize({ _id: new ObjectId(), session: { ...data, cookie: Object.assign({}, cookie) } }),
      );
      this.emit('set', sid);
    });
  }
  override touch(sid: string, _: SessionData, callback?: Callback): void {
    this.#answer(callback, () => this.emit('touch', sid));
  }
  override destroy(sid: string, callback?: Callback): void {
    this.#answer(callback, () => {
      this.collection.delete(sid);
      this.emit('destroy', sid);
    });
  }
  override clear(callback?: Callback): void {
    this.#answer(callback, () => {
      this.collection.clear();
    });
  }

  #read(row: Uint8Array | undefined): SessionData | null {
    return row ? (deserialize(row) as { session: SessionData }).session : null;
  }

  #answer<T>(callback: Callback<T> | undefined, work: () => T): void {
    const result = work();
    setImmediate(() => callback?.(null, result));
  }
}
