import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { DynamicModule } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  DebateSpaceEvents,
  DebateSpaceModule,
  DebateSpaceService,
  getDebateSpaceToken,
} from 'nestjs-debate-space';
import { LogoutRoute } from 'nestjs-debate-space/internal';
import session from 'express-session';
import { logInTo } from '#support/browser/browser.js';
import { eventsOf } from '#support/hosts/events.js';
import { scenario } from '#support/hosts/scenario.js';
import { keys, using } from '#support/service/service.js';
import { destroySession } from '#support/hosts/session-jobs.js';

const moduleOf = (applicationName: string, name?: string): DynamicModule =>
  DebateSpaceModule.forRoot({ ...keys, applicationName, authUrl: 'http://127.0.0.1:9', name });

/** The classes that are tokens. */
const classesOf = ({ providers = [] }: DynamicModule) =>
  providers.flatMap((provider) => {
    const token = 'provide' in provider ? provider.provide : provider;
    return typeof token === 'function' ? [token] : [];
  });

const opened: TestingModule[] = [];
afterEach(async () => {
  for (const testing of opened.splice(0)) await testing.close();
});

async function start(...imports: DynamicModule[]): Promise<TestingModule> {
  const testing = await Test.createTestingModule({ imports }).compile();
  opened.push(testing);
  return testing.init();
}

describe('a test of a host', () => {
  it('sends logouts to a route of its own, also those of named applications', async () => {
    const send = jest.fn(() => Promise.resolve({ status: 200 }));
    const testing = await Test.createTestingModule({
      imports: [moduleOf('demo'), moduleOf('youth', 'youth')],
    })
      .overrideProvider(LogoutRoute)
      .useValue({ url: 'of a test', send })
      .compile();
    await testing.init();
    for (const name of [undefined, 'youth'])
      await testing.get(getDebateSpaceToken(name, DebateSpaceService)).logoutUser('alice');
    await testing.close(); // delivers what waits
    expect(send).toHaveBeenCalledTimes(2);
  });
});

describe('named applications side by side', () => {
  const names = [undefined, 'city', 'youth'];
  const modules = () => [moduleOf('demo'), moduleOf('city', 'city'), moduleOf('youth', 'youth')];
  const urlsIn = (testing: TestingModule) =>
    names.map((name) => testing.get(getDebateSpaceToken(name, DebateSpaceService)).backchannelLogoutUrl);
  const urls = ['demo', 'city', 'youth'].map((name) => `http://127.0.0.1:9/auth/logout/${name}`);

  it('are told apart in any order of imports, also when a bundler gives all classes one name', async () => {
    const classes = [...new Set(modules().flatMap(classesOf))];
    const before = classes.map((token) => [token, token.name] as const);
    const tokens = () => classes.map((token) => getDebateSpaceToken('city', token));
    const tokensBefore = tokens();
    for (const token of classes) Object.defineProperty(token, 'name', { value: 'a', configurable: true });
    try {
      expect(tokens()).toEqual(tokensBefore);
      for (const imports of [modules(), modules().toReversed()])
        expect(urlsIn(await start(...imports))).toEqual(urls);
    } finally {
      for (const [token, value] of before)
        Object.defineProperty(token, 'name', { value, configurable: true });
    }
  });
});

describe('several applications in one process', () => {
  const city = scenario({ applicationName: 'city' });
  const youth = scenario({ applicationName: 'youth' });

  it('two apps on one store object each report to their own service, and leave the store as it was', async () => {
    const store = new session.MemoryStore();
    const before = Object.getOwnPropertyNames(store).toSorted();
    const one = await city.start({ store, act: destroySession });
    await logInTo(await youth.start({ store, act: destroySession }), 'bob');
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
      act: destroySession,
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
