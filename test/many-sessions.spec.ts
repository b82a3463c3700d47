import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { RedisStore } from 'connect-redis';
import type { Request } from 'express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { redisClient, redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { seeded } from 'debate-space-fixtures/seeded.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';

const SESSIONS = 10_000;
/** Requests under way at the same time. */
const AT_ONCE = 100;

const random = seeded(11);
const hosts: SessionHost[] = [];
const close: (() => Promise<unknown>)[] = [];
let service: DebateSpaceSimulator;
let delivered: (uid: string) => unknown;

beforeEach(async () => {
  service = await startService();
  const redis = await startRedis();
  close.push(() => redis.stop());
  for (let instance = 0; instance < 2; instance += 1) {
    const client = redisClient(redis.url);
    await client.connect();
    close.push(() => client.close());
    const act = (request: Request): unknown =>
      new Promise((resolve) => {
        request.session.destroy(resolve);
      });
    // However busy the machine is, no logout is sent again because its answer took too long.
    const http = { timeoutMs: 300_000, totalTimeoutMs: 300_000 };
    const debateSpace = using(service, { logout: { concurrency: 32 }, http });
    const host = await SessionHost.start({ store: new RedisStore({ client }), act, debateSpace });
    hosts.push(host);
    host.app.get(DebateSpaceEvents).events$.subscribe((event) => {
      if (event.type === 'logout-delivered') delivered(event.uid);
    });
  }
});
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.stop();
  for (const closeOne of close.splice(0).reverse()) await closeOne();
  await service.stop();
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

redisServer.describe('10,000 sessions on Redis, at two instances of an app', () => {
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
    for (const host of hosts.splice(0)) await host.stop(); // whatever is told twice is told by now
    expect(heard.toSorted()).toEqual(ended.toSorted());
    expect(service.received.logouts.toSorted()).toEqual(ended.toSorted());
  }, 900_000);
});
