import { describe, expect, it } from '@jest/globals';
import session from 'express-session';
import { DebateSpaceEvents, DebateSpaceService, getDebateSpaceToken } from 'nestjs-debate-space';
import { logInTo } from 'debate-space-fixtures/browser.js';
import { eventsOf } from 'debate-space-fixtures/events.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';

const city = scenario({ applicationName: 'city' });
const youth = scenario({ applicationName: 'youth' });
const act = destroySession;

describe('several applications in one process', () => {
  it('two apps do not see each other’s endings', async () => {
    const [one, other] = [await city.start({ act }), await youth.start({ act })];
    const [alice, bob] = [await logInTo(one, 'alice'), await logInTo(other, 'bob')];
    await alice.post('/act');
    await bob.post('/act');

    expect(await city.logouts()).toEqual(['alice']);
    expect(await youth.logouts()).toEqual(['bob']);
  });

  it('two apps on one store object each report to their own service, and leave the store as it was', async () => {
    const store = new session.MemoryStore();
    const before = Object.getOwnPropertyNames(store).toSorted();
    const one = await city.start({ store, act });
    await logInTo(await youth.start({ store, act }), 'bob');
    await logInTo(one, 'bob'); // both have met the store
    const browser = await logInTo(one, 'alice');
    await browser.post('/act');

    expect([await city.logouts(), await youth.logouts()]).toEqual([['alice'], ['alice']]);
    const own = Object.getOwnPropertyNames(store).filter((name) => name !== 'generate'); // express-session's
    expect(own.toSorted()).toEqual(before.filter((name) => name !== 'generate'));
  });

  it('two named instances in one app, each with its own store, do not see each other’s endings', async () => {
    const [cityStore, youthStore] = [new session.MemoryStore(), new session.MemoryStore()];
    const host = await city.start({
      store: cityStore,
      stores: { '/youth': youthStore },
      act,
      debateSpace: [
        { ...using(city.service, { session: { store: cityStore } }), name: 'city' },
        { ...using(youth.service, { session: { store: youthStore } }), name: 'youth' },
      ],
    });
    const [cityEvents, youthEvents] = ['city', 'youth'].map((name) =>
      eventsOf({ get: () => host.app.get(getDebateSpaceToken(name, DebateSpaceEvents)) }),
    );
    const browser = await logInTo(host, 'bob', '/youth/');
    await browser.post('/youth/act');
    await host.app.get(getDebateSpaceToken('city', DebateSpaceService)).logoutUser('alice');

    expect(await city.logouts()).toEqual(['alice']);
    expect(youth.service.received.logouts).toEqual(['bob']);
    for (const events of [cityEvents, youthEvents])
      expect(events?.map(({ type }) => type)).toEqual(['session-ended', 'logout-delivered']);
  });

  it('a named instance is not found by class', async () => {
    const host = await city.start({ debateSpace: [{ ...using(city.service), name: 'city' }] });
    expect(() => host.app.get(DebateSpaceService)).toThrow('could not find');
  });
});
