import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import session from 'express-session';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  DebateSpaceEvents,
  DebateSpaceService,
  getDebateSpaceToken,
  type DebateSpaceEvent,
} from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost, type Act } from 'debate-space-fixtures/session-host.js';

const destroy: Act = (request) => new Promise((resolve) => request.session.destroy(resolve));

let city: DebateSpaceSimulator;
let youth: DebateSpaceSimulator;
beforeEach(async () => {
  city = await startService({ applicationName: 'city' });
  youth = await startService({ applicationName: 'youth' });
});
afterEach(async () => {
  await city.stop();
  await youth.stop();
});

describe('several applications in one process', () => {
  it('two apps do not see each other’s endings', async () => {
    const [one, other] = [
      await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace: using(city) }),
      await SessionHost.start({ store: new session.MemoryStore(), act: destroy, debateSpace: using(youth) }),
    ];
    const [alice, bob] = [new Browser(one.url), new Browser(other.url)];
    await alice.post('/login', { uid: 'alice' });
    await bob.post('/login', { uid: 'bob' });
    await alice.post('/act');
    await bob.post('/act');
    await one.stop();
    await other.stop();

    expect(city.received.logouts).toEqual(['alice']);
    expect(youth.received.logouts).toEqual(['bob']);
  });

  it('two apps on one store object each tell their own service, and leave the store as it was', async () => {
    const store = new session.MemoryStore();
    const before = Object.getOwnPropertyNames(store).toSorted();
    const hosts = [
      await SessionHost.start({ store, act: destroy, debateSpace: using(city) }),
      await SessionHost.start({ store, act: destroy, debateSpace: using(youth) }),
    ];
    for (const { url } of hosts) await new Browser(url).post('/login', { uid: 'bob' }); // both have met the store
    const browser = new Browser(hosts[0]?.url ?? '');
    await browser.post('/login', { uid: 'alice' });
    await browser.post('/act');
    for (const host of hosts) await host.stop();

    expect([city.received.logouts, youth.received.logouts]).toEqual([['alice'], ['alice']]);
    const own = Object.getOwnPropertyNames(store).filter((name) => name !== 'generate'); // express-session's
    expect(own.toSorted()).toEqual(before.filter((name) => name !== 'generate'));
  });

  it('two named instances in one app, each with its own store, do not see each other’s endings', async () => {
    const [cityStore, youthStore] = [new session.MemoryStore(), new session.MemoryStore()];
    const host = await SessionHost.start({
      store: cityStore,
      stores: { '/youth': youthStore },
      act: destroy,
      debateSpace: [
        { ...using(city, { session: { store: cityStore } }), name: 'city' },
        { ...using(youth, { session: { store: youthStore } }), name: 'youth' },
      ],
    });
    const seen: Record<string, DebateSpaceEvent['type'][]> = { city: [], youth: [] };
    for (const [name, types] of Object.entries(seen)) {
      const events = host.app.get(getDebateSpaceToken(name, DebateSpaceEvents));
      events.events$.subscribe(({ type }) => types.push(type));
    }
    const browser = new Browser(host.url);
    await browser.post('/youth/login', { uid: 'bob' });
    await browser.post('/youth/act');
    await host.app.get(getDebateSpaceToken('city', DebateSpaceService)).logoutUser('alice');
    await host.stop();

    expect(city.received.logouts).toEqual(['alice']);
    expect(youth.received.logouts).toEqual(['bob']);
    expect(seen).toEqual({
      city: ['session-ended', 'logout-delivered'],
      youth: ['session-ended', 'logout-delivered'],
    });
  });

  it('a named instance is not found by class', async () => {
    const debateSpace = [{ ...using(city), name: 'city' }];
    const host = await SessionHost.start({ store: new session.MemoryStore(), debateSpace });
    expect(() => host.app.get(DebateSpaceService)).toThrow('could not find');
    await host.stop();
  });
});
