import { describe, expect, it } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { defaultSessionUid } from './session-user.js';
import { sessionRequest } from './session-request.js';
import { WatchedApp } from './watched-app.js';

type Callback = (error: unknown, result?: unknown) => void;
type Rows = Map<string, object>;

/** How a store tells that it is done – and how a host written for it calls it. */
interface StoreKind {
  readonly name: string;
  readonly make: (rows: Rows) => Record<string, (...args: never[]) => unknown>;
  /** Calls as such a host does; resolves when that host would go on. */
  readonly call: (store: object, method: string, ...args: unknown[]) => Promise<unknown>;
}

const method = (store: object, name: string): ((...args: unknown[]) => unknown) =>
  (Reflect.get(store, name) as (...args: unknown[]) => unknown).bind(store);

const byCallback = (store: object, name: string, ...args: unknown[]): Promise<unknown> =>
  new Promise((resolve, reject) => {
    method(store, name)(...args, (error: unknown, result: unknown) => {
      if (error) reject(new Error('the store failed', { cause: error }));
      else resolve(result);
    });
  });
const directly = (store: object, name: string, ...args: unknown[]): Promise<unknown> =>
  Promise.resolve(method(store, name)(...args));

const kinds: StoreKind[] = [
  {
    name: 'a store with callbacks in the same tick',
    make: (rows) => ({
      get: (sid: string, done: Callback) => {
        done(null, rows.get(sid));
      },
      set: (sid: string, row: object, done: Callback) => {
        rows.set(sid, row);
        done(null);
      },
      destroy: (sid: string, done: Callback) => {
        rows.delete(sid);
        done(null);
      },
    }),
    call: byCallback,
  },
  {
    name: 'a store with callbacks later',
    make: (rows) => ({
      get: (sid: string, done: Callback) => setImmediate(done, null, rows.get(sid)),
      set: (sid: string, row: object, done: Callback) =>
        setImmediate(() => {
          rows.set(sid, row);
          done(null);
        }),
      destroy: (sid: string, done: Callback) =>
        setImmediate(() => {
          rows.delete(sid);
          done(null);
        }),
    }),
    call: byCallback,
  },
  {
    name: 'a store with promises',
    make: (rows) => ({
      get: (sid: string) => Promise.resolve(rows.get(sid)),
      set: (sid: string, row: object) => Promise.resolve(rows.set(sid, row)).then(() => 'stored'),
      destroy: (sid: string) => Promise.resolve(rows.delete(sid)),
    }),
    call: directly,
  },
  {
    name: 'a store that says nothing',
    make: (rows) => ({
      get: (sid: string, done?: Callback) => {
        done?.(null, rows.get(sid));
      },
      set: (sid: string, row: object) => {
        rows.set(sid, row);
      },
      destroy: (sid: string) => {
        rows.delete(sid);
      },
    }),
    call: directly,
  },
  {
    name: 'a store of a class with private fields',
    make: (rows) => {
      class PrivateStore {
        readonly #rows = rows;
        get(sid: string, done: Callback): void {
          done(null, this.#rows.get(sid));
        }
        set(sid: string, row: object, done: Callback): void {
          this.#rows.set(sid, row);
          done(null);
        }
        destroy(sid: string, done: Callback): void {
          this.#rows.delete(sid);
          done(null);
        }
      }
      return new PrivateStore() as unknown as Record<string, (...args: never[]) => unknown>;
    },
    call: byCallback,
  },
];

interface Watching {
  readonly app: WatchedApp;
  readonly ends: string[];
  readonly faults: unknown[];
}

function watching(store: object, uid = defaultSessionUid): Watching {
  const ends: string[] = [];
  const faults: unknown[] = [];
  const app = new WatchedApp({
    ...{ uid, graceMs: 10 },
    onSessionEnd: (end) => void ends.push(`${end.uid}: ${end.reason}`),
    onFault: (where, error) => faults.push({ where, error: (error as Error).name }),
  });
  app.watch(store);
  return { app, ends, faults };
}

/** Has every verdict fall; then says who was reported. */
async function ended({ app, ends }: Watching): Promise<string[]> {
  await app.close();
  return ends;
}

describe.each(kinds)('$name', ({ make, call }) => {
  it('reports a destroyed session without any request, and no session without a user', async () => {
    const rows: Rows = new Map([
      ['s1', { user: 'alice' }],
      ['s2', {}],
    ]);
    const store = make(rows);
    const watch = watching(store);
    await call(store, 'destroy', 's1');
    await call(store, 'destroy', 's2');
    await call(store, 'destroy', 's3');
    expect(await ended(watch)).toEqual(['alice: destroyed']);
    expect([...rows.keys()]).toEqual([]);
  });

  it('reports a session that loses or changes its user, and not one that keeps it', async () => {
    const rows: Rows = new Map(['s1', 's2', 's3'].map((sid) => [sid, { user: `${sid}-user` }]));
    const store = make(rows);
    const watch = watching(store);
    await call(store, 'set', 's1', {});
    await call(store, 'set', 's2', { user: 'bob' });
    await call(store, 'set', 's3', { user: 's3-user', basket: 1 });
    expect((await ended(watch)).toSorted()).toEqual(['s1-user: user-removed', 's2-user: user-replaced']);
  });

  it('reports a session that another instance has saved again after its end', async () => {
    const rows: Rows = new Map([['s1', { user: 'alice' }]]);
    const store = make(rows);
    const watch = watching(store);
    await call(store, 'destroy', 's1');
    while (watch.ends.length === 0) await new Promise(setImmediate);
    rows.set('s1', { user: 'alice' });
    await call(store, 'destroy', 's1');
    await call(store, 'destroy', 's1');
    expect(await ended(watch)).toEqual(['alice: destroyed', 'alice: destroyed']);
  });

  it('answers as it does without us, and has its own methods back afterwards', async () => {
    const [plain, watched] = [make(new Map()), make(new Map())];
    const own = Object.getOwnPropertyNames(watched);
    const watch = watching(watched);
    const steps = [
      ['set', 's1', { user: 'alice' }],
      ['get', 's1'],
      ['destroy', 's1'],
      ['get', 's1'],
    ] as const;
    for (const [name, ...args] of steps) {
      expect(await call(watched, name, ...args)).toEqual(await call(plain, name, ...args));
    }
    await ended(watch);
    expect(Object.getOwnPropertyNames(watched)).toEqual(own);
    expect(Object.getOwnPropertySymbols(watched)).toEqual([]);
  });
});

describe('a watched store', () => {
  it('has a session live again by a request that came after its end, and by none that was under way', async () => {
    const events: string[] = [];
    const nothing = (): void => undefined;
    const done = (): Promise<void> => Promise.resolve();
    const app = new WatchedApp({
      onSessionEnd: ({ uid }) => void events.push(`${uid} has left`),
      liveSessions: {
        ...{
          lastOnly: true,
          saved: nothing,
          touched: nothing,
          anonymous: nothing,
          reported: done,
          forget: done,
        },
        loaded: (sid) => void events.push(`${sid} is live`),
        ended: () => Promise.resolve({ isFirst: true, isLast: true }),
      },
    });
    const store = {
      get: (_sid: string, called: Callback) => {
        called(null, { user: 'alice' });
      },
      destroy: (_sid: string, called: Callback) => {
        called(null);
      },
      createSession: (request: object, session: object) =>
        Object.assign(request, { sessionID: 's1', session }),
    };
    app.watch(store);
    const arrived = (): object => {
      const request = { res: { closed: false, once: nothing, on: nothing, off: nothing } };
      sessionRequest(request);
      return request;
    };
    const early = arrived();
    await byCallback(store, 'destroy', 's1');
    while (events.length === 0) await new Promise(setImmediate);
    store.createSession(early, { user: 'alice' });
    expect(events).toEqual(['alice has left']);
    store.createSession(arrived(), { user: 'alice' });
    expect(events).toEqual(['alice has left', 's1 is live']);
    await app.close();
  });

  it('is called in the same tick, and returns what it returns, when the user is known', async () => {
    const calls: unknown[][] = [];
    const call = (...args: unknown[]): number => {
      (args.at(-1) as Callback)(null);
      return calls.push(args);
    };
    const store = { get: call, set: call, destroy: call };
    const watch = watching(store);
    const request = {
      res: { closed: false, once: () => undefined, on: () => undefined, off: () => undefined },
      sessionID: 's1',
    };
    const session = Object.defineProperty({ user: 'alice' }, 'req', { value: request });
    const done = (): void => undefined;
    expect(store.set('s1', session, done)).toBe(1);
    expect(store.destroy('s1', done)).toBe(2);
    expect(calls.map(([sid]) => sid)).toEqual(['s1', 's1']);
    await ended(watch);
  });

  it('calls the host’s callback once, with its own this and arguments', async () => {
    const seen: unknown[] = [];
    const store = {
      get: (_: string, done: Callback) => {
        done(null, { user: 'alice' });
      },
      set: () => undefined,
      destroy: (_: string, done: (this: unknown, ...args: unknown[]) => void) => {
        done.call('this', null, 'OK', 7);
      },
    };
    const watch = watching(store);
    await new Promise<void>((resolve) => {
      store.destroy('s1', function (this: unknown, ...args) {
        seen.push([this, ...args]);
        resolve();
      });
    });
    await ended(watch);
    expect(seen).toEqual([['this', null, 'OK', 7]]);
  });

  interface Failure {
    readonly name: string;
    readonly destroy: (sid: string, done: Callback) => unknown;
  }
  const failures: Failure[] = [
    { name: 'by callback', destroy: (_, done) => setImmediate(done, new Error('down')) },
    { name: 'by promise', destroy: () => Promise.reject(new Error('down')) },
    {
      name: 'by throwing',
      destroy: () => {
        throw new Error('down');
      },
    },
  ];
  it.each(failures)(
    'that fails to destroy $name ends nothing, and leaves no rejection unhandled',
    async ({ destroy }) => {
      const unhandled: unknown[] = [];
      const note = (reason: unknown): unknown => unhandled.push(reason);
      process.on('unhandledRejection', note);
      const store = {
        get: (_: string, done: Callback) => setImmediate(done, null, { user: 'alice' }),
        set: () => 0,
        destroy,
      };
      const watch = watching(store);
      const told = new Promise<unknown>((resolve) => {
        const returned = store.destroy('s1', resolve);
        Promise.resolve(returned).catch(resolve);
      });
      expect(await told).toEqual(new Error('down'));
      await new Promise((resolve) => setImmediate(resolve));
      expect(await ended(watch)).toEqual([]);
      expect(watch.ends).toEqual([]);
      process.off('unhandledRejection', note);
      expect(unhandled).toEqual([]);
    },
  );

  it('that fails to destroy in silence ends nothing', async () => {
    const store = {
      get: (_: string, done: Callback) => setImmediate(done, null, { user: 'alice' }),
      set: () => 0,
      destroy: () => undefined as unknown,
    };
    const watch = watching(store);
    await method(store, 'destroy')('s1');
    expect(await ended(watch)).toEqual([]);
  });

  it('that destroys in silence and takes its time is asked until it has', async () => {
    const rows: Rows = new Map([['s1', { user: 'alice' }]]);
    const store = {
      get: (sid: string, done: Callback) => setImmediate(done, null, rows.get(sid)),
      set: () => 0,
      destroy: (sid: string) => {
        setTimeout(() => rows.delete(sid), 20);
      },
    };
    const watch = watching(store);
    method(store, 'destroy')('s1');
    await new Promise<void>((resolve) => setTimeout(resolve, 0));
    expect(await ended(watch)).toEqual(['alice: destroyed']);
  });

  it('that cannot be asked still destroys', async () => {
    const destroyed: string[] = [];
    const store = {
      get: (_: string, done: Callback) => {
        done(new Error('down'));
      },
      set: () => undefined,
      destroy: (sid: string, done: Callback) => {
        destroyed.push(sid);
        done(null);
      },
    };
    const watch = watching(store);
    await new Promise((resolve) => {
      store.destroy('s1', resolve);
    });
    expect(destroyed).toEqual(['s1']);
    await ended(watch);
    expect(watch.faults).toContainEqual({ where: 'store.destroy', error: 'Error' });
  });

  it('that never answers a read still destroys, and the end is noted when the answer comes', async () => {
    let answer: Callback = () => undefined;
    const store = {
      get: (_: string, done: Callback) => {
        answer = done;
      },
      set: () => undefined,
      destroy: (_: string, done: Callback) => {
        done(null);
      },
    };
    const watch = watching(store);
    await new Promise((resolve) => {
      store.destroy('s1', resolve);
    });
    answer(null, { user: 'alice' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await ended(watch)).toEqual(['alice: destroyed']);
  });

  it('that clears in a list with ids reports everybody', async () => {
    const store = {
      get: (_: string, done: Callback) => {
        done(null, undefined);
      },
      set: () => undefined,
      destroy: () => undefined,
      all: (done: Callback) => {
        done(null, [{ id: 's1', user: 'alice' }, { id: 's2' }, { user: 'bob' }]);
      },
      clear: (done: Callback) => {
        done(null);
      },
    };
    const watch = watching(store);
    await new Promise((resolve) => {
      store.clear(resolve);
    });
    expect((await ended(watch)).toSorted()).toEqual(['alice: cleared', 'bob: cleared']);
  });

  it('that says late that it has saved a session, after it was destroyed, leaves no live session behind', async () => {
    const rows = new Map<string, object>();
    const saved: Callback[] = [];
    const store = {
      get: (sid: string, done: Callback) => {
        done(null, rows.get(sid));
      },
      set: (sid: string, session: object, done: Callback) => {
        rows.set(sid, session);
        saved.push(done);
      },
      destroy: (sid: string, done: Callback) => {
        rows.delete(sid);
        done(null);
      },
    };
    const live: string[] = [];
    const nothing = (): void => undefined;
    const app = new WatchedApp({
      onSessionEnd: nothing,
      liveSessions: {
        ...{ lastOnly: true, loaded: nothing, touched: nothing, anonymous: nothing },
        saved: (sid) => void live.push(sid),
        ended: () => Promise.resolve({ isFirst: true, isLast: true }),
        ...{ reported: () => Promise.resolve(), forget: () => Promise.resolve() },
      },
    });
    app.watch(store);
    store.set('s1', { user: 'alice' }, nothing);
    store.destroy('s1', nothing);
    for (const done of saved) done(null);
    await app.close();
    expect(live).toEqual([]);
  });

  it('that one request of a browser logs in to while another one renews it ends nothing', async () => {
    const rows = new Map<string, object>();
    const saved: Callback[] = [];
    const store = {
      get: (sid: string, done: Callback) => setImmediate(done, null, rows.get(sid)),
      set: (sid: string, session: object, done: Callback) => {
        rows.set(sid, session);
        saved.push(done);
      },
      destroy: (sid: string, done: Callback) => setImmediate(done, null, rows.delete(sid)),
    };
    const watch = watching(store);
    const arrived = (): ServerResponse => {
      const native = new IncomingMessage(new Socket());
      const res = new ServerResponse(native);
      Object.assign(native, { url: '/', headers: { cookie: 'sid=s1' }, sessionID: 's1', session: {}, res });
      const seen = sessionRequest(native);
      if (seen) watch.app.openRequests.add(seen);
      return res;
    };
    const logIn = ({ req }: ServerResponse, sessionID: string): void => {
      Object.assign(req, { sessionID, session: { user: 'alice', req } });
      store.set(sessionID, Reflect.get(req, 'session') as object, () => undefined);
    };
    const [login, renewal] = [arrived(), arrived()];
    logIn(login, 's1');
    await byCallback(store, 'destroy', 's1');
    for (const done of saved.splice(0)) done(null);
    login.end();
    logIn(renewal, 's2');
    renewal.setHeader('Set-Cookie', 'sid=s2').end();
    for (const done of saved) done(null);
    expect(await ended(watch)).toEqual([]);
  });

  it('remembers no call that the store has done before its user was found', async () => {
    const reads: (() => void)[] = [];
    const store = {
      get: (_sid: string, done: Callback) =>
        void reads.push(() => {
          done(null);
        }),
      set: (_sid: string, _session: object, done: Callback) => {
        done(null);
      },
      destroy: (_sid: string, done: Callback) => {
        done(null);
      },
    };
    const nothing = (): void => undefined;
    const app = new WatchedApp({
      onSessionEnd: nothing,
      answerTimeoutMs: 1,
      liveSessions: {
        ...{ lastOnly: true, loaded: nothing, saved: nothing, touched: nothing, anonymous: nothing },
        ended: () => Promise.resolve({ isFirst: true, isLast: true }),
        reported: () => Promise.resolve(),
        forget: () => Promise.resolve(),
      },
    });
    app.watch(store);
    const answer = async (): Promise<void> => {
      for (const read of reads.splice(0)) read();
      await new Promise(setImmediate);
    };
    await byCallback(store, 'set', 's1', {}); // waits for the read, for a millisecond
    await answer();
    await byCallback(store, 'set', 's1', { user: 'alice' });
    await answer();
    expect(reads).toHaveLength(0); // no look whether the two overlapped
    await app.close();
  });

  const DESTROY = 'destroys the session';
  const LEAVE = 'saves it without a user';
  const SAVE = 'saves it with one';
  type Call = typeof DESTROY | typeof LEAVE | typeof SAVE;

  it.each<{ begun: Call[]; run: Call[]; live: string[] }>([
    { begun: [DESTROY, SAVE], run: [SAVE, DESTROY], live: ['saved', 'forgotten'] },
    { begun: [DESTROY, SAVE], run: [DESTROY, SAVE], live: ['saved'] },
    { begun: [LEAVE, SAVE], run: [SAVE, LEAVE], live: ['saved', 'forgotten'] },
    { begun: [LEAVE, SAVE], run: [LEAVE, SAVE], live: ['saved'] },
    { begun: [SAVE, LEAVE], run: [LEAVE, SAVE], live: [] },
    { begun: [SAVE, DESTROY], run: [DESTROY, SAVE], live: [] },
  ])('a host $begun at once, and a database runs $run: $live', async ({ begun, run, live }) => {
    const rows = new Map<string, object>();
    const statements = new Map<string, () => void>();
    const store = {
      get: (sid: string, done: Callback) => setImmediate(done, null, rows.get(sid)),
      set: (sid: string, session: object, done: Callback) =>
        statements.set('user' in session ? SAVE : LEAVE, () => {
          rows.set(sid, session);
          done(null);
        }),
      destroy: (sid: string, done: Callback) =>
        statements.set(DESTROY, () => {
          done(null, rows.delete(sid));
        }),
    };
    const calls = {
      [DESTROY]: () => byCallback(store, 'destroy', 's1'),
      [LEAVE]: () => byCallback(store, 'set', 's1', {}),
      [SAVE]: () => byCallback(store, 'set', 's1', { user: 'alice' }),
    };
    const noted: string[] = [];
    const nothing = (): void => undefined;
    const app = new WatchedApp({
      onSessionEnd: nothing,
      liveSessions: {
        ...{ lastOnly: true, loaded: nothing, touched: nothing, anonymous: nothing },
        saved: () => void noted.push('saved'),
        ended: () => Promise.resolve({ isFirst: true, isLast: true }),
        reported: () => Promise.resolve(),
        forget: () => Promise.resolve(noted.push('forgotten')),
      },
    });
    app.watch(store);
    const done = begun.map((name) => calls[name]());
    while (statements.size < begun.length) await new Promise(setImmediate);
    for (const name of run) statements.get(name)?.();
    await Promise.all(done);
    await app.close();
    expect(noted).toEqual(live);
  });
});
