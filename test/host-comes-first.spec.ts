import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  DebateSpaceEvents,
  type DebateSpaceEvent,
  type SessionRecord,
  type SessionUid,
} from 'nestjs-debate-space';
import { firstValueFrom, filter } from 'rxjs';
import { Browser } from 'debate-space-fixtures/browser.js';
import { Gate } from 'debate-space-fixtures/gate.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost, type Act } from 'debate-space-fixtures/session-host.js';
import { storageWith } from 'debate-space-fixtures/storage-with.js';

const destroy: Act = async (request, response) => {
  await new Promise((resolve) => request.session.destroy(resolve));
  response.setHeader('x-of-the-host', 'yes').status(200).end('logged out');
};

let service: DebateSpaceSimulator;
beforeEach(async () => {
  service = await startService();
});
afterEach(async () => {
  await service.stop();
});

async function answerOfLogout(
  debateSpace: Parameters<typeof SessionHost.start>[0]['debateSpace'],
): Promise<object> {
  const host = await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace });
  const browser = new Browser(host.url);
  await browser.post('/login', { uid: 'alice' });
  const answer = await whole(await browser.fetch('/act', { method: 'POST' }));
  await host.stop();
  return answer;
}

async function whole(response: Response): Promise<{ status: number; headers: object; body: string }> {
  const headers = new Headers(response.headers);
  headers.delete('date');
  return { status: response.status, headers: Object.fromEntries(headers), body: await response.text() };
}

describe('the host comes first', () => {
  it('a logout is answered before the service has answered', async () => {
    service.faults.add({ kind: 'latency', ms: 30_000, operation: 'logout' });
    const host = await SessionHost.start({
      store: new session.MemoryStore(),
      act: destroy,
      debateSpace: using(service),
    });
    const seen: DebateSpaceEvent['type'][] = [];
    host.app.get(DebateSpaceEvents).events$.subscribe(({ type }) => seen.push(type));
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    expect(await browser.post('/act')).toBe('logged out');
    await service.received.waitFor('logout');
    expect(seen.at(-1)).toBe('session-ended'); // and no more: the service has not answered yet
    await service.stop(); // breaks the connection, so that the host need not wait for its shutdown
    await host.stop();
    expect(seen).not.toContain('logout-delivered');
  });

  it('a logout’s answer is the same with a service that is up, one that is down, and without the plugin', async () => {
    const without = await answerOfLogout(undefined);
    const up = await answerOfLogout(using(service));
    await service.goDown();
    const down = await answerOfLogout(using(service));
    expect(up).toEqual(without);
    expect(down).toEqual(without);
  });

  it('a uid resolver that throws is an event and a log line, and the host’s requests are answered', async () => {
    const uid = (): string => {
      throw new TypeError('no such field');
    };
    const warnings: unknown[] = [];
    const logger = {
      log: () => undefined,
      error: () => undefined,
      warn: (line: unknown) => warnings.push(line),
    };
    const debateSpace = using(service, { session: { uid } });
    const host = await SessionHost.start({
      store: new session.MemoryStore(),
      act: destroy,
      debateSpace,
      logger,
    });
    const fault = firstValueFrom(
      host.app.get(DebateSpaceEvents).events$.pipe(filter(({ type }) => type === 'fault')),
    );
    const browser = new Browser(host.url);
    expect(await browser.post('/login', { uid: 'alice' })).toBe('hello alice');
    expect(await browser.post('/act')).toBe('logged out');
    expect(await fault).toEqual({ type: 'fault', where: 'session.uid', error: 'TypeError' });
    await host.stop();
    expect(warnings.join('\n')).toContain('session.uid (TypeError)');
    expect(service.received.logouts).toEqual([]);
  });

  const resolvers = [
    {
      name: 'throws at a session without a user',
      uid: (s: SessionRecord) => (s.user as { uid: string }).uid,
      ended: ['alice'],
    },
    { name: 'returns a promise', uid: (() => Promise.resolve('alice')) as unknown as SessionUid, ended: [] },
  ];
  it.each(resolvers)(
    'a uid resolver that $name is an event, and $ended are logged out',
    async ({ uid, ended }) => {
      const act: Act = (request) => {
        delete request.session.user;
      };
      const debateSpace = using(service, { session: { uid } });
      const host = await SessionHost.start({ store: new session.MemoryStore(), act, debateSpace });
      const events: DebateSpaceEvent[] = [];
      host.app.get(DebateSpaceEvents).events$.subscribe((event) => events.push(event));
      const browser = new Browser(host.url);
      await browser.post('/login', { uid: 'alice' });
      await browser.post('/act');
      expect(await browser.get('/whoami')).toBe('nobody');
      await host.stop();
      expect(events).toContainEqual({ type: 'fault', where: 'session.uid', error: 'TypeError' });
      expect(service.received.logouts).toEqual(ended);
    },
  );

  const mixtures: { readonly name: string; readonly act: Act }[] = [
    {
      name: 'store.clear',
      act: (_, __, store) => {
        store.clear?.();
      },
    },
    {
      name: 'store.destroy of a guest’s session',
      act: (request, _, store) => {
        store.destroy(request.sessionID);
      },
    },
  ];
  it.each(mixtures)('$name and a login in one handler come to the store in this order', async ({ act }) => {
    const store = new session.MemoryStore();
    const acting: Act = (request, response, of) => {
      if (!('basket' in request.session)) {
        Object.assign(request.session, { basket: 1 });
        return;
      }
      act(request, response, of);
      request.session.user = { uid: 'bob' };
    };
    const host = await SessionHost.start({ store, act: acting, debateSpace: using(service) });
    const browser = new Browser(host.url);
    await browser.post('/act'); // gets a guest's session
    await browser.post('/act');
    expect(await browser.get('/whoami')).toBe('bob');
    await host.stop();
  });

  it('a storage that takes its time is not waited for, and what it notes late is delivered', async () => {
    const noted = new Gate();
    const storage = storageWith((memory) => ({
      commit: async (...args) => {
        await noted.passed;
        return memory.commit(...args);
      },
    }));
    const debateSpace = using(service, { storage });
    const host = await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace });
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    expect(await browser.post('/act')).toBe('logged out');
    expect(await browser.get('/whoami')).toBe('nobody');
    const stopped = host.stop();
    noted.open();
    await stopped;
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('a shutdown waits for what the storage is noting', async () => {
    const [releasing, released] = [new Gate(), new Gate()];
    const storage = storageWith((memory) => ({
      commit: async (checks, changes) => {
        if ([...changes.keys()].some((key) => key.startsWith('pending:'))) {
          releasing.open();
          await released.passed;
        }
        return memory.commit(checks, changes);
      },
    }));
    const debateSpace = using(service, { storage });
    const host = await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace });
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    await browser.post('/act');
    await releasing.passed;
    const stopped = host.stop();
    released.open();
    await stopped;
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('a storage that never answers does not keep the app from closing', async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const storage = storageWith(() => ({ commit: never, count: never, close: never }));
    const debateSpace = using(service, { storage });
    const host = await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace });
    const browser = new Browser(host.url);
    await browser.post('/login', { uid: 'alice' });
    expect(await browser.post('/act')).toBe('logged out');
    await host.stop();
  });

  it('a frozen store is an event, and the app goes on', async () => {
    const store = Object.freeze({ get: () => undefined, set: () => undefined, destroy: () => undefined });
    const warnings: unknown[] = [];
    const logger = {
      log: () => undefined,
      error: () => undefined,
      warn: (line: unknown) => warnings.push(line),
    };
    const debateSpace = using(service, { session: { store } });
    const host = await SessionHost.start({ store: new session.MemoryStore(), debateSpace, logger });
    expect(await new Browser(host.url).get('/whoami')).toBe('nobody');
    await host.stop();
    expect(warnings.join('\n')).toContain('session store (TypeError)');
  });
});
