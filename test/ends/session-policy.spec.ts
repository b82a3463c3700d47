import { beforeEach, describe, expect, it } from '@jest/globals';
import type { Request } from 'express';
import { memoryStorage, StorageError, type StorageEngine } from 'nestjs-debate-space';
import { redisStorage } from 'nestjs-debate-space/redis';
import { Browser, logInTo } from 'debate-space-fixtures/browser.js';
import { Latch } from 'debate-space-fixtures/latch.js';
import { redisClient, redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { logIn, SessionHost } from 'debate-space-fixtures/session-host.js';
import { sharedStores } from 'debate-space-fixtures/shared-stores.js';
import { storageWith } from 'debate-space-fixtures/storage-with.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';

const storageKey = 'a storage key of a test';

const scene = scenario();
let latches: readonly [entered: Latch, goOn: Latch];

/** What a host does by `POST /act?name=…`. */
const acts: Record<string, (request: Request) => unknown> = {
  logout: destroySession,
  renew: async (request) => {
    await new Promise((resolve) => request.session.regenerate(resolve));
    await logIn(request, 'alice');
  },
  leave: async (request) => new Promise((resolve) => request.session.regenerate(resolve)),
  change: async (request) => {
    const [entered, goOn] = latches;
    entered.open();
    await goOn.passed;
    Object.assign(request.session, { basket: 1 });
  },
};

/** Starts instances of one app on the same sessions. @returns how many browsers log in, which take the instances in turn */
async function start(
  count: number,
  storage: StorageEngine,
): Promise<(browsers: number) => Promise<Browser[]>> {
  const act = (request: Request): unknown => acts[request.query.name as string]?.(request);
  const hosts: SessionHost[] = [];
  for (const store of sharedStores(count)) {
    hosts.push(await scene.start({ store, act }, { session: { policy: 'last' }, storage, storageKey }));
  }
  const instance = (n: number): { url: string } => ({ url: hosts[n % count]?.url ?? '' });
  return (browsers) => Promise.all(Array.from({ length: browsers }, (_, n) => logInTo(instance(n), 'alice')));
}

const act = async (browser: Browser | undefined, name: string): Promise<string | undefined> =>
  browser?.post(`/act?name=${name}`);

function lastOfSeveral(instances: number, storage: () => StorageEngine): void {
  it('the end of the last session of a user is reported, and no earlier one', async () => {
    const browsers = await start(instances, storage());
    const [one, other] = await browsers(2);
    await act(one, 'logout');
    expect(scene.service.received.logouts).toEqual([]);
    await act(other, 'logout');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('a login that regenerates its session is no second session', async () => {
    const browsers = await start(instances, storage());
    const [browser] = await browsers(1);
    await act(browser, 'renew');
    await act(browser, 'renew');
    await act(browser, 'logout');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('the last sessions that end at the same time are reported once', async () => {
    const browsers = await start(instances, storage());
    const each = await browsers(8);
    await Promise.all(each.map((browser) => act(browser, 'logout')));
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('the end of the next login is reported again', async () => {
    const browsers = await start(instances, storage());
    for (let round = 0; round < 3; round += 1) {
      const [browser] = await browsers(1);
      await act(browser, 'logout');
      await scene.service.received.waitFor('logout', { count: round + 1 });
    }
    expect(await scene.logouts()).toEqual(['alice', 'alice', 'alice']);
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

  it.each(['leave', 'renew'])(
    'a session that a slow request saves back after its browser has gone on (%s) does not hide the last end',
    async (goesOn) => {
      const browsers = await start(1, memoryStorage());
      const [one, other] = await browsers(2);
      const [entered, goOn] = (latches = [new Latch(), new Latch()] as const);
      const slow = act(one, 'change');
      await entered.passed;
      await act(one, goesOn);
      goOn.open();
      await slow;
      await act(one, 'logout');
      expect(scene.service.received.logouts).toEqual([]);
      await act(other, 'logout');
      expect(await scene.logouts()).toEqual(['alice']);
    },
  );

  it('each end is reported while the storage does not answer', async () => {
    const browsers = await start(
      1,
      failingFor(() => true),
    );
    const [one] = await browsers(2);
    expect(await act(one, 'logout')).toBe('done');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it('a session that ended while the storage did not answer does not count as alive later', async () => {
    let isDown = false;
    const browsers = await start(
      1,
      failingFor(() => isDown),
    );
    const [one, other, third] = await browsers(3);
    isDown = true;
    await act(one, 'logout'); // reported, because nobody knows better
    await scene.service.received.waitFor('logout');
    isDown = false;
    await act(other, 'logout');
    await act(third, 'logout');
    expect(await scene.logouts()).toEqual(['alice', 'alice']);
  });
});

redisServer.describe("session.policy 'last', over two instances and a Redis", () => {
  lastOfSeveral(2, () => storage);

  let storage: StorageEngine;
  beforeEach(async () => {
    const redis = await startRedis();
    scene.afterwards(() => redis.stop());
    const client = redisClient(redis.url);
    await client.connect();
    scene.afterwards(() => client.close());
    storage = redisStorage({ sendCommand: (...args) => client.sendCommand(args) });
  });
});
