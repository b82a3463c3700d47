import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestScope } from './request-scope.js';
import type { SessionEndOptions } from './session-end.js';
import { WatchedApp } from './watched-app.js';

type Callback = (error?: unknown, result?: unknown) => void;
type Row = Record<string, unknown>;

/** A store that answers at once, or in a later turn of the event loop. */
class Store {
  readonly rows = new Map<string, Row>();
  readonly calls: string[] = [];
  fails = false;
  /** Whether it never answers a read. */
  isMute = false;

  constructor(readonly isAsync = false) {}

  get(sid: string, done: Callback): void {
    this.calls.push(`get ${sid}`);
    if (this.isMute) return;
    const answer = (): void => {
      done(null, this.rows.get(sid));
    };
    if (this.isAsync) setImmediate(answer);
    else answer();
  }
  set(sid: string, session: Row, done?: Callback): void {
    this.calls.push(`set ${sid}`);
    this.#answer(done, () => (this.fails ? undefined : this.rows.set(sid, { ...session })));
  }
  destroy(sid: string | string[], done?: Callback): void {
    this.calls.push(`destroy ${String(sid)}`);
    this.#answer(done, () => {
      for (const each of this.fails ? [] : [sid].flat()) if (each !== 'kept') this.rows.delete(each);
    });
  }
  touch(_sid: string, _session: Row, done?: Callback): void {
    this.#answer(done, () => undefined);
  }
  clear(done?: Callback): void {
    this.calls.push('clear');
    this.#answer(done, () => {
      this.rows.clear();
    });
  }
  /** As that of express-session, up to the new session. */
  regenerate({ sessionID = '' }: { sessionID?: string }, done: Callback): void {
    this.destroy(sessionID, done);
  }
  all(done: Callback): void {
    this.#answer(done, () => Object.fromEntries(this.rows));
  }

  #answer(done: Callback | undefined, work: () => unknown): void {
    const run = (): void => {
      const result = work();
      done?.(this.fails ? new Error('of the store') : null, result);
    };
    if (this.isAsync) setImmediate(run);
    else run();
  }
}

/** The part of a response that the detector uses. */
class Response extends EventEmitter {
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  closed = false;
  readonly socket = Object.assign(new EventEmitter(), { destroySoon: () => undefined, writableLength: 0 });
  readonly headers: Record<string, unknown> = {};
  getHeader(name: string): unknown {
    return this.headers[name];
  }
  write(): boolean {
    return true;
  }
  end(): this {
    this.headersSent = this.writableEnded = this.writableFinished = true;
    return this;
  }
}

let store: Store;
let ends: string[];
let endedSids: (string | undefined)[];
let app: WatchedApp;
const userOf = (uid?: string): Row => ({ cookie: {}, ...(uid === undefined ? {} : { user: uid }) });

function start(options: Partial<SessionEndOptions> = {}): void {
  app = new WatchedApp({
    graceMs: 20,
    ...options,
    onSessionEnd: ({ uid, reason }, sid) => {
      ends.push(`${uid} ${reason}`);
      endedSids.push(sid);
    },
  });
  app.watch(store);
}

beforeEach(() => {
  [store, ends, endedSids] = [new Store(), [], []];
  start();
});
afterEach(async () => {
  await app.close();
});

interface Request {
  readonly native: { session?: Row | null; sessionID?: string };
  /** The session that it has loaded. */
  readonly session: Row;
  readonly response: Response;
  readonly scope: RequestScope;
  /** Sends the answer, and closes the response. @returns the ends that were told before the answer left */
  answer(): Promise<string[]>;
}

/** An open request that has loaded its session. */
function request(sid?: string, uid?: string, cookie?: string): Request {
  const response = new Response();
  const native: Request['native'] = {};
  const raw = { headers: { cookie } } as IncomingMessage;
  const scope = new RequestScope(native, raw, response as unknown as ServerResponse);
  scope.listen(app);
  const session = { ...userOf(uid), req: native };
  if (sid !== undefined) {
    if (uid !== undefined) store.rows.set(sid, userOf(uid));
    Object.assign(native, { sessionID: sid, session });
    app.loadedBefore(store, scope);
  }
  const answer = async (): Promise<string[]> => {
    response.end();
    const told = [...ends];
    await closed(response);
    return told;
  };
  return { native, session, response, scope, answer };
}

async function closed(response: Response): Promise<void> {
  response.closed = true;
  response.emit('close');
  await judged();
}

/** Gives every open end the time for its verdict: with no request open, it needs none but the store's. */
async function judged(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
}

/** As express-session's `destroy` does. */
function destroyOwn({ native }: Request): void {
  const { sessionID = '' } = native;
  Reflect.deleteProperty(native, 'session');
  store.destroy(sessionID, () => undefined);
}

/** As a `regenerate` and a login do: by express-session, if it is known whose the call is. */
function regenerate({ native }: Request, sid: string, uid?: string, isKnown = false): void {
  const session = { ...userOf(uid), req: native };
  const { sessionID = '' } = native;
  if (isKnown) store.regenerate(native, () => undefined);
  else store.destroy(sessionID, () => undefined);
  Object.assign(native, { sessionID: sid, session });
  store.set(sid, session, () => undefined);
}

describe('a request that ends its own session', () => {
  it('has told it before its answer leaves', async () => {
    const logout = request('s1', 'alice');
    destroyOwn(logout);
    expect(ends).toEqual([]);
    expect(await logout.answer()).toEqual(['alice destroyed']);
    expect(ends).toEqual(['alice destroyed']);
  });

  it('by saving it without its user, or with another, tells of the user before', async () => {
    const [logout, switched] = [request('s1', 'alice'), request('s2', 'bob')];
    Reflect.deleteProperty(logout.session, 'user');
    store.set('s1', logout.session);
    switched.session.user = 'carol';
    store.set('s2', switched.session);
    await Promise.all([logout.answer(), switched.answer()]);
    expect(ends).toEqual(['alice user-removed', 'bob user-replaced']);
  });

  it('by saving it as expired tells of it, also by a touch', async () => {
    const [saved, touched] = [request('s1', 'alice'), request('s2', 'bob')];
    const expired = { cookie: { expires: new Date(0) } };
    Object.assign(saved.session, expired);
    store.set('s1', saved.session);
    store.rows.delete('s2');
    store.touch('s2', Object.assign(touched.session, expired));
    await Promise.all([saved.answer(), touched.answer()]);
    expect(ends).toEqual(['alice destroyed', 'bob destroyed']);
  });

  it('tells nothing when the same user continues in a new session, and the old row may go later', async () => {
    const login = request('s1', 'alice');
    regenerate(login, 's2', 'alice');
    await login.answer();
    store.destroy('s1');
    await judged();
    expect(ends).toEqual([]);
  });

  it('tells nothing when a store takes longer than the grace to save the new session for @fastify/session', async () => {
    const login = request('s1', 'alice');
    const session = { ...userOf(), req: login.native };
    store.destroy('s1', () => undefined);
    store.set('s2', session); // the request keeps its old session until the store has called back
    await new Promise((resolve) => setTimeout(resolve, 60));
    Object.assign(login.native, { sessionID: 's2', session: Object.assign(session, userOf('alice')) });
    store.set('s2', session);
    await login.answer();
    expect(ends).toEqual([]);
  });

  it('tells of it when the new session is nobody’s', async () => {
    const logout = request('s1', 'alice');
    regenerate(logout, 's2');
    expect(await logout.answer()).toEqual(['alice destroyed']);
  });

  it('tells of it when the store has not saved the new session of the same user', async () => {
    const login = request('s1', 'alice');
    store.destroy('s1', () => undefined);
    const session = { ...userOf('alice'), req: login.native };
    Object.assign(login.native, { sessionID: 's2', session });
    await login.answer();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('tells nothing when it saves the session back with its user', async () => {
    const page = request('s1', 'alice');
    store.destroy('s1');
    store.set('s1', page.session);
    await page.answer();
    expect(ends).toEqual([]);
  });

  it('tells nothing when the store fails and still has the session', async () => {
    store.fails = true;
    const logout = request('s1', 'alice');
    destroyOwn(logout);
    await logout.answer();
    expect(ends).toEqual([]);
  });

  it('tells of it when the store fails, but has done it', async () => {
    store.fails = true;
    const logout = request('s1', 'alice');
    destroyOwn(logout);
    store.rows.delete('s1');
    await logout.answer();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('tells of it when the store says nothing, but no longer has it', async () => {
    const logout = request('s1', 'alice');
    Reflect.deleteProperty(logout.native, 'session');
    store.destroy('s1');
    await logout.answer();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('tells of it although its client has left, and a session that it began then counts for nothing', async () => {
    const logout = request('s1', 'alice');
    regenerate(logout, 's2', 'alice');
    await closed(logout.response); // before its head
    logout.response.writableEnded = true;
    await app.close();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('by clearing its cookie tells of it when the response closes', async () => {
    const logout = request('s1', 'alice', 'sid=s%3As1.c2ln');
    logout.response.headers['set-cookie'] = 'sid=; Max-Age=0; Path=/';
    await logout.answer();
    expect(ends).toEqual(['alice abandoned']);
  });
});

it('a session whose user its request knows only later ends for that user', async () => {
  await app.close();
  start({ uid: (_session, caller) => (caller as { user?: string } | undefined)?.user });
  const logout = request('s1');
  Object.assign(logout.native, { user: 'alice' }); // as a guard does, after the session was loaded
  destroyOwn(logout);
  expect(await logout.answer()).toEqual(['alice destroyed']);
});

describe('a session that other requests own', () => {
  it('has ended at the answer of the second one that destroys it, while the first one is open', async () => {
    const [open, logout] = [request('s1', 'alice'), request('s1', 'alice')];
    destroyOwn(open);
    store.destroy('s1', () => undefined); // @fastify/session lets go of it after the call
    Reflect.deleteProperty(logout.native, 'session');
    expect(await logout.answer()).toEqual(['alice destroyed']);
    await open.answer();
  });

  it('has ended at the answer of the one that let go of it, while another is open', async () => {
    const [logout, page] = [request('s1', 'alice'), request('s1', 'alice')];
    destroyOwn(logout);
    expect(await logout.answer()).toEqual(['alice destroyed']);
    await page.answer();
    expect(ends).toHaveLength(1);
  });

  it('has ended at the answer of the one that left it, although another one continues in a new session', async () => {
    const [renewing, logout] = [request('s1', 'alice'), request('s1', 'alice')];
    regenerate(renewing, 's2', 'alice');
    regenerate(logout, 's3');
    expect(await logout.answer()).toEqual(['alice destroyed']);
    await renewing.answer();
    expect(ends).toHaveLength(1);
  });

  it('has ended when the client of the one that left it is gone before its answer', async () => {
    const [renewing, logout] = [request('s1', 'alice'), request('s1', 'alice')];
    regenerate(renewing, 's2', 'alice');
    regenerate(logout, 's3');
    logout.response.writableEnded = true;
    await closed(logout.response);
    await renewing.answer();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('has not ended when one continues in a new session and others only read', async () => {
    const [renewing, page] = [request('s1', 'alice'), request('s1', 'alice')];
    store.rows.set('s1', userOf());
    const visitor = request('s1');
    store.rows.set('s1', userOf('alice'));
    regenerate(renewing, 's2', 'alice');
    for (const each of [page, visitor, renewing]) await each.answer();
    await app.close();
    expect(ends).toEqual([]);
  });

  const returns = [true, false].flatMap((isKnown) => [
    { isKnown, isSavedBack: false, reported: ['alice destroyed'] },
    { isKnown, isSavedBack: true, reported: [] },
  ]);
  it.each(returns)(
    'is judged by the store when one continues, and a later answer sets the old cookie again (the caller is known: $isKnown, saved back: $isSavedBack)',
    async ({ isKnown, isSavedBack, reported }) => {
      const [renewing, page] = [request('s1', 'alice'), request('s1', 'alice')];
      regenerate(renewing, 's2', 'alice', isKnown);
      const answers = [renewing.answer()];
      if (isSavedBack) store.set('s1', page.session);
      page.response.headers['set-cookie'] = 'sid=s%3As1.c2ln; Path=/';
      await Promise.all([...answers, page.answer()]);
      expect(ends).toEqual(reported);
    },
  );

  it.each([true, false])(
    'has not ended when one continues, and a stream that set the old cookie before closes later (the caller is known: %s)',
    async (isKnown) => {
      const [renewing, stream] = [request('s1', 'alice'), request('s1', 'alice')];
      stream.response.headers['set-cookie'] = 'sid=s%3As1.c2ln; Path=/';
      stream.response.headersSent = true;
      regenerate(renewing, 's2', 'alice', isKnown);
      await renewing.answer();
      await stream.answer();
      await app.close();
      expect(ends).toEqual([]);
    },
  );

  it('has ended by a job after the grace period, though its owners stay open', async () => {
    await app.close();
    start({ graceMs: 60_000 });
    request('s1', 'alice');
    store.destroy('s1');
    await judged();
    expect(ends).toEqual([]);
    await app.close(); // ends the grace period
    expect(ends).toEqual(['alice destroyed']);
  });

  it('has ended at once when another request ends it, for each user of its own', async () => {
    const [alice, bob] = [request('s1', 'alice'), request('s2', 'bob')];
    await bob.answer();
    store.destroy('s2');
    await judged();
    expect(ends).toEqual(['bob destroyed']);
    await alice.answer();
    expect(ends).toHaveLength(1);
  });
});

describe('a session that no request owns', () => {
  it('has ended when the store has done it', async () => {
    store.rows.set('s1', userOf('alice'));
    store.destroy('s1');
    await judged();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('ends by a call for several sessions as far as the store no longer has them', async () => {
    store.rows.set('s1', userOf('alice'));
    store.rows.set('kept', userOf('bob'));
    store.destroy(['s1', 'kept'], () => undefined);
    await judged();
    expect(ends).toEqual(['alice destroyed']);
  });

  it('ends once, and again when it was saved with its user since', async () => {
    const page = request('s1', 'alice');
    await page.answer();
    for (let n = 0; n < 2; n += 1) store.destroy('s1', () => undefined);
    await judged();
    expect(ends).toHaveLength(1);
    store.set('s1', userOf('alice'));
    store.destroy('s1');
    await judged();
    expect(ends).toHaveLength(2);
  });

  it('ends again when a later request has loaded it: another instance has saved it', async () => {
    await request('s1', 'alice').answer();
    store.destroy('s1');
    await judged();
    await request('s1', 'alice').answer();
    store.destroy('s1');
    await judged();
    expect(ends).toHaveLength(2);
  });

  it('has ended when a request without a session clears its cookie', async () => {
    await request('s1', 'alice', 'sid=s%3As1.c2ln').answer();
    const logout = request(undefined, undefined, 'sid=s%3As1.c2ln');
    logout.response.headers['set-cookie'] = 'sid=; Max-Age=0; Path=/';
    await logout.answer();
    expect(ends).toEqual(['alice abandoned']);
  });

  it.each([
    { clearsAt: '/', reported: [] },
    { clearsAt: '/app', reported: ['alice abandoned'] },
  ])(
    'of a cookie at /app is reported as $reported when a request without a session clears one at $clearsAt',
    async ({ clearsAt, reported }) => {
      const cookie = 'sid=s%3As1.c2ln';
      const page = request(undefined, undefined, cookie);
      const session = { cookie: { path: '/app' }, user: 'alice', req: page.native };
      store.rows.set('s1', session);
      Object.assign(page.native, { sessionID: 's1', session });
      app.loadedBefore(store, page.scope);
      await page.answer();
      const other = request(undefined, undefined, cookie);
      other.response.headers['set-cookie'] = `sid=; Max-Age=0; Path=${clearsAt}`;
      await other.answer();
      expect(ends).toEqual(reported);
    },
  );

  it('has not ended when a request without a session gives the browser another one of the same user', async () => {
    for (const sid of ['s1', 's2']) await request(sid, 'alice', `sid=s%3A${sid}.c2ln`).answer();
    const page = request(undefined, undefined, 'sid=s%3As1.c2ln');
    page.response.headers['set-cookie'] = 'sid=s%3As2.c2ln; Path=/';
    await page.answer();
    expect(ends).toEqual([]);
  });

  it.each(['sid=s%3As1.AAAA', 'lang=s%3As1.c2ln', 'sid=s1'])(
    'has not ended when a request without a session clears the cookie %s, which has not loaded it',
    async (forged) => {
      await request('s1', 'alice', 'sid=s%3As1.c2ln').answer();
      const stranger = request(undefined, undefined, forged);
      const clears = ['sid', 'lang'].map((name) => `${name}=; Max-Age=0; Path=/`);
      stranger.response.headers['set-cookie'] = clears;
      await stranger.answer();
      expect(ends).toEqual([]);
    },
  );

  it('ends for the user whom the store has, not for the one whom this process remembers', async () => {
    await request('s1', 'alice').answer();
    store.rows.set('s1', userOf()); // another instance has logged alice out
    const login = request('s1');
    login.session.user = 'bob';
    store.set('s1', login.session);
    await login.answer();
    expect(ends).toEqual([]);
    store.rows.set('s1', userOf('carol')); // another instance has reported bob
    store.destroy('s1');
    await judged();
    expect(ends).toEqual(['carol destroyed']);
  });

  it('was left when its browser returns with the other one of two that one login form has made', async () => {
    const clicks = [1, 2].map(() => request('guest', undefined, 'sid=s%3Aguest.c2ln'));
    for (const [n, click] of clicks.entries()) regenerate(click, `s${n}`, 'alice');
    for (const click of clicks) await click.answer();
    await request('s1', 'alice', 'sid=s%3As1.c2ln').answer();
    store.destroy('s0');
    await judged();
    expect(ends).toEqual([]);
  });

  it('ends in slices of a hundred per turn of the event loop', async () => {
    for (let n = 0; n < 250; n += 1) {
      store.rows.set(`s${n}`, userOf(`u${n}`));
      store.destroy(`s${n}`, () => undefined);
    }
    const told: number[] = [];
    while (ends.length < 250) {
      await new Promise(setImmediate);
      told.push(ends.length);
    }
    expect(Math.max(...told.map((count, n) => count - (told[n - 1] ?? 0)))).toBeLessThanOrEqual(200);
    expect(told.length).toBeGreaterThan(1);
  });

  it.each([{ isListed: true }, { isListed: false }])(
    'has ended when the store is cleared (listed: $isListed)',
    async ({ isListed }) => {
      await request('s1', 'alice').answer();
      store.rows.set('s2', userOf('bob'));
      if (!isListed) Object.assign(store, { all: undefined });
      store.clear();
      await judged();
      expect(ends).toEqual(isListed ? ['alice cleared', 'bob cleared'] : ['alice cleared']);
    },
  );
});

describe('with an asynchronous store', () => {
  beforeEach(async () => {
    await app.close();
    store = new Store(true);
    start();
  });

  it('a destroy of an unknown session waits for the read, and later calls of that session stay behind it', async () => {
    store.rows.set('s1', userOf('alice'));
    const destroyed = new Promise((resolve) => {
      store.destroy('s1', resolve);
    });
    store.set('s1', userOf('bob'));
    store.set('s2', userOf('carol'));
    expect(store.calls.filter((call) => !call.startsWith('get'))).toEqual(['set s2']);
    await destroyed;
    await judged();
    expect(store.calls.filter((call) => !call.startsWith('get'))).toEqual(['set s2', 'destroy s1', 'set s1']);
    expect(ends).toEqual(['alice destroyed']);
    expect(store.rows.get('s1')).toMatchObject({ user: 'bob' });
  });

  it('a save without a user, and a clear, wait as well', async () => {
    store.rows.set('s1', userOf('alice'));
    store.set('s1', userOf());
    await judged();
    store.rows.set('s2', userOf('bob'));
    store.clear();
    await judged();
    expect(ends).toEqual(['alice user-removed', 'bob cleared']);
  });

  it('a session that is saved right after a clear stays in the store', async () => {
    store.clear();
    store.set('s1', userOf('alice'));
    await judged();
    expect([...store.rows.keys()]).toEqual(['s1']);
  });

  it('a call for a session whose user is known does not wait', () => {
    request('s1', 'alice');
    store.calls.length = 0;
    store.destroy('s1', () => undefined);
    expect(store.calls).toEqual(['destroy s1']);
  });
});

describe('with a store that answers no read any more', () => {
  beforeEach(async () => {
    await app.close();
    store = new Store(true);
    start();
  });

  it('an end of which a request knows the user is reported', async () => {
    const logout = request('s1', 'alice');
    store.isMute = true;
    destroyOwn(logout);
    await judged();
    expect(await logout.answer()).toEqual(['alice destroyed']);
  });

  it('a renewal is not reported, nor is the app kept from closing', async () => {
    const login = request('s1', 'alice');
    store.isMute = true;
    regenerate(login, 's2', 'alice');
    await login.answer();
    await app.close();
    expect(ends).toEqual([]);
  });

  it('a call of a job reaches the store after `answerTimeoutMs`', async () => {
    store.rows.set('s1', userOf('alice'));
    store.isMute = true;
    await new Promise((resolve) => {
      store.destroy('s1', resolve);
    });
    expect(store.rows.size).toBe(0);
  });
});

describe('those who keep the live sessions', () => {
  let kept: string[];
  beforeEach(async () => {
    await app.close();
    kept = [];
    start({
      liveSessions: {
        register: (sid, uid, expiresAt) =>
          void kept.push(`registered ${sid} ${uid} ${expiresAt ?? 'without end'}`),
        forget: (sid, uid) => Promise.resolve(void kept.push(`forgot ${sid} ${uid}`)),
      },
    });
  });

  it('hear of each use of a session; its end is reported with its id', async () => {
    const logout = request('s1', 'alice');
    store.set('s1', { ...logout.session, cookie: { expires: new Date(4e12) } });
    destroyOwn(logout);
    await logout.answer();
    expect(kept).toEqual(['registered s1 alice without end', 'registered s1 alice 4000000000000']);
    expect(ends).toEqual(['alice destroyed']);
    expect(endedSids).toEqual(['s1']);
  });

  it('hear that a session ended whose user was reported for the same request', async () => {
    const logout = request('s1', 'alice');
    regenerate(logout, 's2', 'alice');
    destroyOwn(logout);
    await logout.answer();
    const forgot = kept.filter((line) => line.startsWith('forgot'));
    expect([ends, endedSids, forgot]).toEqual([['alice destroyed'], ['s1'], ['forgot s2 alice']]);
  });

  it('do not hear that a session is over which a request has saved back', async () => {
    const page = request('s1', 'alice');
    store.destroy('s1');
    store.set('s1', page.session);
    await page.answer();
    await app.close();
    expect([ends, kept.filter((line) => line.startsWith('forgot'))]).toEqual([[], []]);
  });

  it('hear that a session was left for another one', async () => {
    const login = request('s1', 'alice');
    regenerate(login, 's2', 'alice');
    await login.answer();
    expect([kept.at(-1), ends]).toEqual(['forgot s1 alice', []]);
  });

  it('do not hear of a session by a request that was open when it ended', async () => {
    const [logout, late] = [request('s1', 'alice'), request()];
    destroyOwn(logout);
    await logout.answer();
    const heard = kept.length;
    Object.assign(late.native, { sessionID: 's1', session: userOf('alice') });
    app.loadedBefore(store, late.scope);
    expect(kept).toHaveLength(heard);
  });

  it('do not hear of a touch by a request that was open when another one cleared the cookie', async () => {
    const [logout, page] = [1, 2].map(() => request('s1', 'alice', 'sid=s%3As1.c2ln')) as [Request, Request];
    logout.response.headers['set-cookie'] = 'sid=; Max-Age=0; Path=/';
    await logout.answer();
    const heard = kept.length;
    store.touch('s1', page.session);
    expect([ends, kept.length]).toEqual([['alice abandoned'], heard]);
  });
});
