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

/** The parent's side. It knows of every user until when a session of theirs lived: that is the truth. */
export class Sessions {
  readonly #sessions = new Map<string, SessionData>();
  /** The last session of each user, also when it has ended. */
  readonly #ofUser = new Map<string, { readonly sid: string; readonly until: number }>();
  /** Whose last session was destroyed. */
  readonly #destroyed = new Set<string>();

  /** @returns the answer to send */
  answer({ store, sid, session, number }: NumberedStoreCall): StoreAnswer {
    if (store === 'set' && session) this.#set(sid, session);
    if (store === 'destroy') this.#destroy(sid);
    return { stored: number, session: store === 'get' ? this.#get(sid) : undefined };
  }

  /** In ms; `Infinity` when the session lives until somebody ends it, `undefined` when the user never had one. */
  livesUntil(uid: string): number | undefined {
    return this.#ofUser.get(uid)?.until;
  }

  /** Whether somebody ended the last session of a user, which had not expired by itself. */
  wasDestroyed(uid: string): boolean {
    return this.#destroyed.has(uid);
  }

  #get(sid: string): SessionData | null {
    const session = this.#sessions.get(sid);
    return session && expiryOf(session) > Date.now() ? session : null;
  }

  #set(sid: string, session: SessionData): void {
    this.#sessions.set(sid, session);
    const uid = userOf(session);
    if (uid === undefined) return;
    this.#ofUser.set(uid, { sid, until: expiryOf(session) });
    this.#destroyed.delete(uid);
  }

  #destroy(sid: string): void {
    const session = this.#sessions.get(sid);
    this.#sessions.delete(sid);
    const uid = session && userOf(session);
    if (!session || uid === undefined || this.#ofUser.get(uid)?.sid !== sid) return;
    const [now, expiry] = [Date.now(), expiryOf(session)];
    this.#ofUser.set(uid, { sid, until: Math.min(now, expiry) });
    if (now < expiry) this.#destroyed.add(uid);
  }
}

/** Sessions arrive as JSON: their dates are texts. */
interface ArrivedSession {
  readonly user?: string;
  readonly cookie: { readonly expires?: string | null };
}

function userOf(session: SessionData): string | undefined {
  return (session as unknown as ArrivedSession).user;
}

function expiryOf(session: SessionData): number {
  const { expires } = (session as unknown as ArrivedSession).cookie;
  return expires ? new Date(expires).getTime() : Infinity;
}
