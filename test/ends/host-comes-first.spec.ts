import { describe, expect, it } from '@jest/globals';
import { setTimeout as pause } from 'node:timers/promises';
import { memoryStorage, type SessionRecord, type SessionUid } from 'nestjs-debate-space';
import { logInTo } from '#support/browser/browser.js';
import { eventsOf } from '#support/hosts/events.js';
import { FlakyStorage, replacing } from '#support/storages/flaky-storage.js';
import { Latch } from '#support/latch.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';
import { logIn, type Act, type SessionHostOptions } from '#support/hosts/session-host.js';
import { called, destroySession } from '#support/hosts/session-jobs.js';

const destroy: Act = async (request, response) => {
  await destroySession(request);
  response.setHeader('x-of-the-host', 'yes').status(200).end('logged out');
};

const scene = scenario();

async function answerOfLogout(debateSpace: SessionHostOptions['debateSpace']): Promise<object> {
  const browser = await logInTo(await scene.start({ act: destroy, debateSpace }), 'alice');
  const answer = await whole(await browser.fetch('/act', { method: 'POST' }));
  await scene.stop();
  return answer;
}

async function whole(response: Response): Promise<{ status: number; headers: object; body: string }> {
  const headers = new Headers(response.headers);
  headers.delete('date');
  return { status: response.status, headers: Object.fromEntries(headers), body: await response.text() };
}

describe('the host comes first', () => {
  it('a logout is answered before the service has answered', async () => {
    scene.service.faults.add({ kind: 'latency', ms: 30_000, operation: 'logout' });
    const host = await scene.start({ act: destroy });
    const events = eventsOf(host.app);
    const browser = await logInTo(host, 'alice');
    expect(await browser.post('/act')).toBe('logged out');
    await scene.service.received.waitFor('logout');
    expect(events.at(-1)?.type).toBe('session-ended'); // and no more: the service has not answered yet
    await scene.service.stop(); // breaks the connection, so that the host need not wait for its shutdown
    await scene.stop();
    expect(events.map(({ type }) => type)).not.toContain('logout-delivered');
  });

  it('a logout’s answer is the same with a service that is up or down, and without the plugin', async () => {
    const without = await answerOfLogout(undefined);
    const up = await answerOfLogout(using(scene.service));
    await scene.service.goDown();
    const down = await answerOfLogout(using(scene.service));
    expect(up).toEqual(without);
    expect(down).toEqual(without);
  });

  const resolvers = [
    {
      name: 'throws at every session',
      uid: (): string => {
        throw new TypeError('no such field');
      },
      ended: [],
    },
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
      const host = await scene.start({ act }, { session: { uid } });
      const events = eventsOf(host.app);
      const browser = await logInTo(host, 'alice');
      await browser.post('/act');
      expect(await browser.get('/whoami')).toBe('nobody');
      await scene.stop();
      expect(events).toContainEqual({ type: 'fault', where: 'session.uid', error: 'TypeError' });
      expect(scene.service.received.logouts).toEqual(ended);
    },
  );

  it('a response has no more listeners than Node.js warns of after eleven renewals of its session', async () => {
    const listeners: unknown[] = [];
    const act: Act = async (request, response) => {
      for (let count = 0; count < 11; count += 1) {
        await called((done) => request.session.regenerate(done));
        await logIn(request, 'alice');
        await called((done) => request.session.save(done));
      }
      const most = response.getMaxListeners();
      listeners.push(...response.eventNames().filter((name) => response.listenerCount(name) > most));
    };
    const browser = await logInTo(await scene.start({ act }), 'alice');
    await browser.post('/act');
    expect(await browser.get('/whoami')).toBe('alice');
    expect(listeners).toEqual([]);
    expect(await scene.logouts()).toEqual([]);
  });

  it('a shutdown waits for what the storage is storing', async () => {
    const [storing, stored] = [new Latch(), new Latch()];
    const steps: string[] = [];
    const storage = replacing(memoryStorage(), (memory) => ({
      addLogouts: async (logouts) => {
        storing.open();
        await stored.passed;
        await memory.addLogouts(logouts);
        steps.push('stored');
      },
      close: () => {
        steps.push('closed');
        return memory.close();
      },
    }));
    const act: Act = async (request, response) => {
      response.end('answered'); // no answer waits for the storage then
      await destroySession(request);
    };
    const host = await scene.start({ act }, { storage, logout: { storageTimeoutMs: 10_000 } });
    const browser = await logInTo(host, 'alice');
    await browser.post('/act');
    await storing.passed;
    const stopped = scene.stop();
    expect(await Promise.race([stopped, pause(300, 'it waits')])).toBe('it waits');
    stored.open();
    await stopped;
    expect(steps).toEqual(['stored', 'closed']);
    expect(scene.service.received.logouts).toEqual(['alice']);
  });

  it('a storage that never answers does not keep the app from closing', async () => {
    const flaky = new FlakyStorage();
    const never = (): Promise<never> => new Promise(() => undefined);
    const storage = replacing(flaky.engineWith(await scene.sqlite()), () => ({
      counts: never,
      close: never,
    }));
    const host = await scene.start({ act: destroy }, { storage });
    const browser = await logInTo(host, 'alice');
    flaky.state = 'silent';
    expect(await browser.post('/act')).toBe('logged out');
    await scene.stop();
  });
});
