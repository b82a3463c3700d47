import { Store } from 'express-session';

/** The app's side of a session store that outlives it, as a host's Redis would: the parent process keeps the sessions. */
export class ParentStore extends Store {
  #asked = 0;
  #waiting = new Map();

  constructor() {
    super();
    process.on('message', ({ stored, session }) => {
      const answer = this.#waiting.get(stored);
      this.#waiting.delete(stored);
      answer?.(null, session);
    });
  }

  get(sid, callback) {
    this.#ask({ store: 'get', sid }, callback);
  }

  set(sid, session, callback) {
    this.#ask({ store: 'set', sid, session: JSON.parse(JSON.stringify(session)) }, callback);
  }

  destroy(sid, callback) {
    this.#ask({ store: 'destroy', sid }, callback);
  }

  #ask(call, callback) {
    this.#asked += 1;
    this.#waiting.set(this.#asked, callback);
    process.send({ ...call, number: this.#asked });
  }
}

/** The parent's side. */
export class Sessions {
  #sessions = new Map();

  /** @returns the answer to send */
  answer({ store, sid, session, number }) {
    if (store === 'set') this.#sessions.set(sid, session);
    if (store === 'destroy') this.#sessions.delete(sid);
    return { stored: number, session: store === 'get' ? (this.#sessions.get(sid) ?? null) : undefined };
  }
}
