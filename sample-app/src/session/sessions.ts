import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import session from 'express-session';
import { defer, filter, merge, Subject, take, type Observable } from 'rxjs';

/** Keeps the sessions in memory: the app forgets them when it stops. A real app has a store that lasts. */
@Injectable()
export class Sessions extends session.MemoryStore {
  readonly #destroyed = new Subject<string>();

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
