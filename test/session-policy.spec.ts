import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Request } from 'express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  memorySessionIndex,
  redisSessionIndex,
  type SessionIndex,
  type SessionIndexFactory,
} from 'nestjs-debate-space';
import { Browser } from './support/browser.js';
import { redisClient, redisServer, startRedis } from './support/redis.js';
import { startService, using } from './support/service.js';
import { logIn, SessionHost } from './support/session-host.js';
import { sharedStores } from './support/shared-stores.js';

let service: DebateSpaceSimulator;
const close: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  service = await startService();
});
afterEach(async () => {
  for (const closeOne of close.splice(0).reverse()) await closeOne();
  await service.stop();
});

/** What a host does by `POST /act?name=…`. */
const acts: Record<string, (request: Request) => unknown> = {
  logout: (request) => new Promise((resolve) => request.session.destroy(resolve)),
  renew: async (request) => {
    await new Promise((resolve) => request.session.regenerate(resolve));
    await logIn(request, 'alice');
  },
};

interface Instances {
  readonly browsers: (count: number) => Promise<Browser[]>;
  readonly stop: () => Promise<void>;
}

/** Instances of one app on the same sessions; the browsers take them in turn. */
async function start(count: number, index: SessionIndexFactory): Promise<Instances> {
  const act = (request: Request): unknown => acts[request.query.name as string]?.(request);
  const hosts: SessionHost[] = [];
  for (const store of sharedStores(count)) {
    const debateSpace = using(service, { session: { policy: 'last', index } });
    hosts.push(await SessionHost.start({ store, act, debateSpace }));
  }
  const stop = async (): Promise<void> => {
    for (const host of hosts.splice(0)) await host.stop();
  };
  close.push(stop);
  const loggedIn = async (url = ''): Promise<Browser> => {
    const browser = new Browser(url);
    await browser.post('/login', { uid: 'alice' });
    return browser;
  };
  return {
    browsers: (many) => Promise.all(Array.from({ length: many }, (_, n) => loggedIn(hosts[n % count]?.url))),
    stop,
  };
}

const act = async (browser: Browser | undefined, name: string): Promise<string | undefined> =>
  browser?.post(`/act?name=${name}`);

function lastOfSeveral(instances: number, index: () => SessionIndexFactory): void {
  it('notifies when the last session of the user ends, and not before', async () => {
    const { browsers, stop } = await start(instances, index());
    const [one, other] = await browsers(2);
    await act(one, 'logout');
    expect(service.received.logouts).toEqual([]);
    await act(other, 'logout');
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('is not misled by a login that regenerates its session', async () => {
    const { browsers, stop } = await start(instances, index());
    const [browser] = await browsers(1);
    await act(browser, 'renew');
    await act(browser, 'renew');
    await act(browser, 'logout');
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('notifies once when the last sessions end at the same time', async () => {
    const { browsers, stop } = await start(instances, index());
    const each = await browsers(8);
    await Promise.all(each.map((browser) => act(browser, 'logout')));
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('notifies again after the next login', async () => {
    const { browsers, stop } = await start(instances, index());
    for (let round = 0; round < 3; round += 1) {
      const [browser] = await browsers(1);
      await act(browser, 'logout');
      await service.received.waitFor('logout', { count: round + 1 });
    }
    await stop();
    expect(service.received.logouts).toEqual(['alice', 'alice', 'alice']);
  });
}

describe("session.policy 'last', in one process", () => {
  lastOfSeveral(1, memorySessionIndex);

  it('notifies when the index does not answer: rather one logout too many', async () => {
    const failing: SessionIndexFactory = redisSessionIndex({
      sendCommand: () => Promise.reject(new Error('the Redis of the index is down')),
    });
    const { browsers, stop } = await start(1, failing);
    const [one] = await browsers(2);
    expect(await act(one, 'logout')).toBe('done');
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('is not misled by sessions that ended while the index did not answer', async () => {
    const memory = await memorySessionIndex().open('demo');
    let isDown = false;
    const remove: SessionIndex['remove'] = (hash, uid) => {
      if (isDown) throw new Error('the Redis of the index is down');
      return memory.remove(hash, uid);
    };
    const put = memory.put.bind(memory);
    const index = { open: () => ({ ...memory, put, remove }) };
    const { browsers, stop } = await start(1, index);
    const [one, other, third] = await browsers(3);
    isDown = true;
    await act(one, 'logout'); // told, because nobody knows better
    await service.received.waitFor('logout');
    isDown = false;
    await act(other, 'logout');
    await act(third, 'logout');
    await stop();
    expect(service.received.logouts).toEqual(['alice', 'alice']);
  });
});

redisServer.describe("session.policy 'last', over two instances and a Redis", () => {
  lastOfSeveral(2, () => index);

  let index: SessionIndexFactory;
  beforeEach(async () => {
    const redis = await startRedis();
    close.push(() => redis.stop());
    const client = redisClient(redis.url);
    await client.connect();
    close.push(() => client.close());
    index = redisSessionIndex({ sendCommand: (...args) => client.sendCommand(args) });
  });
});
