import { Store, type SessionData } from 'express-session';
import {
  tellParent,
  type FromParent,
  type NumberedStoreCall,
  type StoreAnswer,
  type StoreCall,
} from './messages.js';

type Callback = (error: unknown, session?: SessionData | null) => void;

/** The app's side of a session store that outlives it, as a host's Redis would: the parent process keeps the sessions. */
export class ParentStore extends Store {
  #asked = 0;
  readonly #waiting = new Map<number, Callback | undefined>();

  constructor() {
    super();
    process.on('message', (message) => {
      const answer = message as FromParent;
      if (!('stored' in answer)) return;
      const callback = this.#waiting.get(answer.stored);
      this.#waiting.delete(answer.stored);
      callback?.(null, answer.session);
    });
  }

  get(sid: string, callback: Callback): void {
    this.#ask({ store: 'get', sid }, callback);
  }

  set(sid: string, session: SessionData, callback?: Callback): void {
    this.#ask({ store: 'set', sid, session: JSON.parse(JSON.stringify(session)) as SessionData }, callback);
  }

  destroy(sid: string, callback?: Callback): void {
    this.#ask({ store: 'destroy', sid }, callback);
  }

  #ask(call: StoreCall, callback: Callback | undefined): void {
    this.#asked += 1;
    this.#waiting.set(this.#asked, callback);
    tellParent({ ...call, number: this.#asked });
  }
}

/** The parent's side. */
export class Sessions {
  readonly #sessions = new Map<string, SessionData>();

  /** @returns the answer to send */
  answer({ store, sid, session, number }: NumberedStoreCall): StoreAnswer {
    if (store === 'set' && session) this.#sessions.set(sid, session);
    if (store === 'destroy') this.#sessions.delete(sid);
    return { stored: number, session: store === 'get' ? (this.#sessions.get(sid) ?? null) : undefined };
  }
}
