import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type {
  LiveSessions,
  SessionEndOptions,
  SessionRecord,
} from '../../debate-space/src/session-end/session-end.js';
import { sessionRequest } from '../../debate-space/src/session-end/session-request.js';
import { WatchedApp } from '../../debate-space/src/session-end/watched-app.js';

type Done = (error: unknown, result?: unknown) => void;
export type Native = IncomingMessage & {
  sessionID?: string | undefined;
  session?: SessionRecord | undefined;
};
type Rows = Record<string, SessionRecord>;

function sessionOf(request: Native, row: SessionRecord): SessionRecord {
  return (request.session = Object.defineProperty({ ...row }, 'req', { value: request }));
}

/** An app with a store that calls back later, as Redis does. */
export class WatchedHost {
  readonly ends: string[] = [];
  readonly logins: string[] = [];
  readonly lives: string[] = [];
  readonly warnings: string[] = [];
  readonly rows: Map<string, SessionRecord>;
  readonly app: WatchedApp;
  error: Error | undefined;
  takesLists = true;

  readonly store = {
    get: (sid: string, done: Done) => this.#later(done, () => this.rows.get(sid)),
    set: (sid: string, row: SessionRecord, done: Done) =>
      this.#later(done, () => this.rows.set(sid, { ...row })),
    touch: (_sid: string, _row: SessionRecord, done: Done) => this.#later(done, () => undefined),
    destroy: (sids: string | string[], done: Done) =>
      this.#later(done, () =>
        (this.takesLists ? [sids].flat() : [sids]).map((sid) => this.rows.delete(sid as string)),
      ),
    clear: (done: Done) =>
      this.#later(done, () => {
        this.rows.clear();
      }),
    /** As those of express-session. */
    createSession: sessionOf,
    regenerate: (request: Native, done: Done) => {
      this.store.destroy(request.sessionID ?? '', (error) => {
        request.sessionID = 's2';
        sessionOf(request, {});
        done(error);
      });
    },
  };

  constructor(rows: Rows = { s1: { user: 'alice' } }, options: Partial<SessionEndOptions> = {}) {
    this.rows = new Map(Object.entries(rows));
    this.app = new WatchedApp({
      graceMs: 60_000, // nothing here waits for it
      onSessionEnd: ({ uid, reason }) => void this.ends.push(`${uid}: ${reason}`),
      loggedIn: (uid) => void this.logins.push(uid),
      onWarning: ({ code }) => void this.warnings.push(code),
      ...options,
    });
    this.app.watch(this.store);
  }

  /** An app that is to know which sessions live. */
  static withLives(rows?: Rows): WatchedHost {
    const note = (what: string) => (sid: string, detail?: unknown) =>
      void host.lives.push(`${sid} ${what}${typeof detail === 'boolean' ? ` ${detail}` : ''}`);
    const lives: Partial<LiveSessions> = { lastOnly: false, loaded: note('loaded'), saved: note('saved') };
    Object.assign(lives, { touched: note('touched'), anonymous: note('anonymous') });
    const resolved = (): Promise<object> => Promise.resolve({ isFirst: true, isLast: true });
    Object.assign(lives, { ended: resolved, reported: resolved, forget: resolved });
    const host = new WatchedHost(rows, { liveSessions: lives as LiveSessions });
    return host;
  }

  #later(done: Done, work: () => unknown): unknown {
    return setImmediate(() => {
      if (this.error) done(this.error);
      else done(null, work());
    });
  }

  /** A request comes with the cookie of this session, which it loads if there is one. */
  request(sid?: string, cookie = sid === undefined ? undefined : `sid=${sid}`): Native {
    const native: Native = new IncomingMessage(new Socket());
    const res = new ServerResponse(native);
    const seen = sessionRequest(
      Object.assign(native, { url: '/', headers: { cookie }, res, sessionID: sid }),
    );
    if (seen) this.app.openRequests.add(seen);
    if (sid !== undefined) this.store.createSession(native, this.rows.get(sid) ?? {});
    return native;
  }

  /** Calls the store, which says that it is done. */
  call(name: 'set' | 'touch' | 'destroy' | 'clear' | 'regenerate', ...args: unknown[]): Promise<unknown> {
    return new Promise((resolve) => {
      Reflect.apply(this.store[name], this.store, [...args, resolve]);
    });
  }

  save(request: Native, sid: string, row: SessionRecord): Promise<unknown> {
    request.sessionID = sid;
    return this.call('set', sid, sessionOf(request, row));
  }

  touch(request: Native, sid: string, row: SessionRecord): Promise<unknown> {
    return this.call('touch', sid, sessionOf(request, row));
  }

  answer(request: Native, setCookie?: string): void {
    const { res } = request as unknown as { readonly res: ServerResponse };
    if (setCookie !== undefined) res.setHeader('Set-Cookie', setCookie);
    res.end();
    Object.defineProperty(res, 'closed', { value: true });
    res.emit('close');
    const seen = sessionRequest(request);
    if (seen) this.app.closed(seen);
  }

  async ended(): Promise<string[]> {
    await this.app.close();
    return this.ends;
  }
}
