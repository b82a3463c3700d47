import { beforeEach, expect, it } from '@jest/globals';
import { RedisStore } from 'connect-redis';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { redisClient, redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { seeded } from 'debate-space-fixtures/seeded.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';
import { destroySession } from 'debate-space-fixtures/session-jobs.js';

const SESSIONS = 3_000;
/** Requests under way at the same time. */
const AT_ONCE = 100;

const random = seeded(11);
let hosts: SessionHost[];
const scene = scenario();
let delivered: (uid: string) => unknown;

beforeEach(async () => {
  hosts = [];
  const redis = await startRedis();
  scene.afterwards(() => redis.stop());
  for (let instance = 0; instance < 2; instance += 1) {
    const client = redisClient(redis.url);
    await client.connect();
    scene.afterwards(() => client.close());
    // However busy the machine is, no logout is sent again because its answer took too long.
    const http = { timeoutMs: 300_000, totalTimeoutMs: 300_000 };
    const store = new RedisStore({ client });
    const host = await scene.start({ store, act: destroySession }, { logout: { concurrency: 32 }, http });
    hosts.push(host);
    host.app.get(DebateSpaceEvents).events$.subscribe((event) => {
      if (event.type === 'logout-delivered') delivered(event.uid);
    });
  }
});

const anyHost = (): string => hosts[Math.floor(random() * hosts.length)]?.url ?? '';

/** Does the same for all, some at a time. */
async function forEach<T>(
  list: readonly T[],
  work: (one: T, index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < list.length; index = next++) await work(list[index] as T, index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

redisServer.describe('3,000 browsers with sessions on Redis, at two instances of an app', () => {
  it('log in and out at random, and each logout is delivered exactly once', async () => {
    const browsers = Array.from({ length: SESSIONS }, () => new Browser(anyHost()));
    const uids = browsers.map((_, n) => `user-${n}`);
    const heard: string[] = [];
    delivered = (uid) => heard.push(uid);
    const logIn = (browser: Browser, uid: string): Promise<string> =>
      browser.post(`${anyHost()}/login`, { uid });

    await forEach(browsers, (browser, n) => logIn(browser, uids[n] ?? ''));
    const ended: string[] = [];
    await forEach(browsers, async (browser, n) => {
      const before = uids[n] ?? '';
      if (random() < 0.2) return; // stays
      await browser.post(`${anyHost()}/act`);
      expect(await browser.get(`${anyHost()}/whoami`)).toBe('nobody');
      ended.push(before);
      if (random() < 0.5) await logIn(browser, `${before} again`);
    });
    expect(ended.length).toBeGreaterThan(SESSIONS / 2);
    await new Promise<void>((resolve) => {
      const check = (): void => {
        if (heard.length >= ended.length) resolve();
      };
      delivered = (uid) => {
        heard.push(uid);
        check();
      };
      check();
    });
    const received = await scene.logouts(); // what is reported twice is reported by now
    expect(heard.toSorted()).toEqual(ended.toSorted());
    expect(received.toSorted()).toEqual(ended.toSorted());
  }, 900_000);
});
