import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import session, { type SessionData } from 'express-session';
import createMemoryStore from 'memorystore';
import { defer, filter, merge, Subject, take, type Observable } from 'rxjs';

const MemoryStore = createMemoryStore(session);
/** The login form needs a session for its token: whoever opens it and does not log in is forgotten after this time. */
const ANONYMOUS_MS = 15 * 60_000;
const NEVER = 0;
const FORGET_EVERY_MS = 60_000;

/** Keeps the sessions in memory: the app forgets them when it stops. A real app has a store that lasts. */
@Injectable()
export class Sessions extends MemoryStore {
  readonly #destroyed = new Subject<string>();

  constructor() {
    const ttl = (_options: unknown, { passport }: SessionData): number =>
      passport?.user === undefined ? ANONYMOUS_MS : NEVER;
    super({ ttl, checkPeriod: FORGET_EVERY_MS });
  }

  override destroy(sid: string, callback?: (error?: unknown) => void): void {
    super.destroy(sid, (error?: unknown) => {
      if (!error) this.#destroyed.next(sid);
      callback?.(error);
    });
  }

  /** Emits once when this process ends the session, immediately when it has ended. */
  whenEnded(sid: string): Observable<unknown> {
    const destroyed = this.#destroyed.pipe(filter((other) => other === sid));
    const missing = defer(() => promisify(this.get.bind(this))(sid)).pipe(filter((found) => !found));
    return merge(destroyed, missing).pipe(take(1));
  }

  /** Logs the user out of all browsers. */
  async endAllOf(uid: string): Promise<void> {
    const sessions = (await promisify(this.all.bind(this))()) ?? {};
    for (const [sid, { passport }] of Object.entries(sessions)) {
      if (passport?.user === uid) await promisify(this.destroy.bind(this))(sid);
    }
  }
}
