import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Request } from 'express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { memoryStorage, StorageError, type StorageEngine } from 'nestjs-debate-space';
import { redisStorage } from 'nestjs-debate-space/redis';
import { Browser } from 'debate-space-fixtures/browser.js';
import { redisClient, redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { logIn, SessionHost } from 'debate-space-fixtures/session-host.js';
import { sharedStores } from 'debate-space-fixtures/shared-stores.js';
import { storageWith } from 'debate-space-fixtures/storage-with.js';

const storageKey = 'a storage key of a test';

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
async function start(count: number, storage: StorageEngine): Promise<Instances> {
  const act = (request: Request): unknown => acts[request.query.name as string]?.(request);
  const hosts: SessionHost[] = [];
  for (const store of sharedStores(count)) {
    const debateSpace = using(service, { session: { policy: 'last' }, storage, storageKey });
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

function lastOfSeveral(instances: number, storage: () => StorageEngine): void {
  it('notifies when the last session of the user ends, and not before', async () => {
    const { browsers, stop } = await start(instances, storage());
    const [one, other] = await browsers(2);
    await act(one, 'logout');
    expect(service.received.logouts).toEqual([]);
    await act(other, 'logout');
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('is not misled by a login that regenerates its session', async () => {
    const { browsers, stop } = await start(instances, storage());
    const [browser] = await browsers(1);
    await act(browser, 'renew');
    await act(browser, 'renew');
    await act(browser, 'logout');
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('notifies once when the last sessions end at the same time', async () => {
    const { browsers, stop } = await start(instances, storage());
    const each = await browsers(8);
    await Promise.all(each.map((browser) => act(browser, 'logout')));
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('notifies again after the next login', async () => {
    const { browsers, stop } = await start(instances, storage());
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
  lastOfSeveral(1, memoryStorage);

  /** A storage that fails wherever it is called for live sessions. */
  function failingFor(isDown: () => boolean): StorageEngine {
    return storageWith((memory) => ({
      get: (keys) => {
        if (isDown() && keys.some((key) => key.startsWith('session:'))) throw new StorageError('down');
        return memory.get(keys);
      },
    }));
  }

  it('notifies when the storage does not answer: rather one logout too many', async () => {
    const { browsers, stop } = await start(
      1,
      failingFor(() => true),
    );
    const [one] = await browsers(2);
    expect(await act(one, 'logout')).toBe('done');
    await stop();
    expect(service.received.logouts).toEqual(['alice']);
  });

  it('is not misled by sessions that ended while the storage did not answer', async () => {
    let isDown = false;
    const { browsers, stop } = await start(
      1,
      failingFor(() => isDown),
    );
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
  lastOfSeveral(2, () => storage);

  let storage: StorageEngine;
  beforeEach(async () => {
    const redis = await startRedis();
    close.push(() => redis.stop());
    const client = redisClient(redis.url);
    await client.connect();
    close.push(() => client.close());
    storage = redisStorage({ sendCommand: (...args) => client.sendCommand(args) });
  });
});
