// Browsers at real stores: logouts beside page loads, two people at one browser over two instances, and cookies that nobody gave
// out. `ROUNDS=1000 npm run test:slow -- shared-browsers` plays more of them; `SEED` plays the same ones again.
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import session, { type Store } from 'express-session';
import { setTimeout as pause } from 'node:timers/promises';
import { Browser, logInTo } from '#support/browser/browser.js';
import { onExpress, onFastify, type Handling } from '#support/endings/handling.js';
import { oddCookies } from '#support/endings/rows.js';
import { eventsOf } from '#support/hosts/events.js';
import { FastifyHost } from '#support/hosts/fastify-host.js';
import { fastifyLogins } from '#support/hosts/fastify-logins.js';
import { scenario } from '#support/hosts/scenario.js';
import type { HandledStore } from '#support/hosts/session-jobs.js';
import { seeded } from '#support/seeded.js';
import { postgresServer, startPostgres, type RunningPostgres } from '#support/servers/postgres.js';
import { redisServer, startRedis, type RunningRedis } from '#support/servers/redis.js';
import { using } from '#support/service/service.js';
import type { PlaceName } from '#support/walk/configurations.js';
import { Places } from '#support/walk/places.js';

const ROUNDS = Number(process.env.ROUNDS ?? 24);
const SEED = Number(process.env.SEED ?? 7);
const BROWSERS_AT_ONCE = 8;
const BESIDE_MS = 200;
/** As the grace of the plugin, and the time of a busy machine. */
const REPORTED_WITHIN_MS = 15_000;

const scene = scenario();
let redis: RunningRedis | undefined;
let postgres: RunningPostgres | undefined;
let places: Places | undefined;
beforeAll(async () => {
  if (redisServer.path !== undefined) redis = await startRedis();
  if (postgresServer.path !== undefined) postgres = await startPostgres();
  places = new Places({ redis: redis?.url, postgres: postgres?.connectionString });
});
afterAll(async () => {
  await places?.close();
  await redis?.stop();
  await postgres?.stop();
});

type Act = (handler: Handling) => unknown;
const acts: Readonly<Record<string, Act>> = {
  reads: () => undefined,
  destroys: (handler) => handler.destroy(),
  regenerates: (handler) => handler.regenerate(),
  'removes the user': ({ session }) => {
    session.user = undefined;
  },
  clears: (handler) => {
    handler.header('Set-Cookie', `${handler.cookieName}=; Max-Age=0; Path=/`);
  },
};
const LOGOUTS = ['destroys', 'regenerates', 'removes the user'] as const;

interface Instance {
  readonly url: string;
  readonly cookieName: string;
  /** How many ends of sessions it has reported, by uid. */
  readonly reported: (uid: string) => number;
}

const platforms = ['Express', 'Fastify'] as const;
type Platform = (typeof platforms)[number];
async function start(platform: Platform, store: object): Promise<Instance> {
  const surroundings = { store: store as HandledStore, others: (): readonly string[] => [] };
  const act = (handler: Handling): unknown =>
    acts[decodeURIComponent(handler.url.split('?')[1] ?? '')]?.(handler);
  const debateSpace = using(scene.service, { logout: { concurrency: 50, storageTimeoutMs: 20_000 } });
  const login = fastifyLogins.session(store);
  const host =
    platform === 'Express'
      ? await scene.start({
          debateSpace,
          store: store as Store,
          act: (request, response) => act(onExpress(request, response, surroundings)),
        })
      : await scene.add(
          FastifyHost.start({
            debateSpace,
            login,
            act: (context) => act(onFastify(context, { ...surroundings, login: login.logIn })),
          }),
        );
  const events = eventsOf(host.app);
  return {
    url: host.url,
    cookieName: platform === 'Express' ? 'connect.sid' : 'sessionId',
    reported: (uid) => events.filter((event) => event.type === 'session-ended' && event.uid === uid).length,
  };
}

/** A store object for each instance: neither hears of the calls of the other one. */
async function storesIn(store: PlaceName, platform: Platform, instances: 1 | 2): Promise<readonly object[]> {
  const rules = { name: '', platform, store, instances, expiry: false, isRolling: false };
  return (await places?.open(rules))?.stores ?? [];
}

const servers = [
  { name: 'redis', server: redisServer },
  { name: 'postgres', server: postgresServer },
] as const;
const doing = (name: string): string => `/act?${encodeURIComponent(name)}`;
const one = <T>(all: readonly T[], random: () => number): T => all[Math.floor(random() * all.length)] as T;

for (const { name, server } of servers)
  server.describe(`with the sessions in ${name},`, () => {
    it.each(platforms)(
      'on %s no logout is missed beside page loads of the same browser',
      async (platform) => {
        const [store = {}] = await storesIn(name, platform, 1);
        const { url } = await start(platform, store);
        const random = seeded(SEED);
        const logOut = async (uid: string): Promise<void> => {
          const browser = await logInTo({ url }, uid);
          const pages = Array.from({ length: 3 }, async () => {
            await pause(random() * BESIDE_MS);
            await browser.post(doing('reads'));
          });
          await pause(random() * BESIDE_MS);
          await browser.post(doing(one(LOGOUTS, random)));
          await Promise.all(pages);
        };
        const uids = Array.from({ length: ROUNDS }, (_, n) => `user-${n}`);
        const lane = async (_: unknown, n: number): Promise<void> => {
          for (let next = n; next < uids.length; next += BROWSERS_AT_ONCE) await logOut(uids[next] ?? '');
        };
        await Promise.all(Array.from({ length: BROWSERS_AT_ONCE }, lane));
        const logouts = new Set(await scene.logouts());
        expect(uids.filter((uid) => !logouts.has(uid))).toEqual([]);
      },
      3_600_000,
    );

    it.each(platforms)(
      'on %s two people at one browser over two instances are reported when they leave',
      async (platform) => {
        const stores = await storesIn(name, platform, 2);
        const both = await Promise.all(stores.map((store) => start(platform, store)));
        const random = seeded(SEED);
        const expected = new Map<string, number>();
        const reportsOf = (uid: string): number => both.reduce((sum, { reported }) => sum + reported(uid), 0);
        const browser = new Browser(both[0]?.url ?? '');
        const wrong: string[] = [];
        const at = (path: string): string => `${one(both, random).url}${path}`;
        for (let round = 0; round < ROUNDS; round += 1) {
          const uid = one(['ann', 'ben'], random);
          await browser.post(at('/login'), { uid });
          for (let page = 0; page < 2; page += 1) await browser.post(at(doing('reads')));
          const logout = one(LOGOUTS, random);
          await browser.post(at(doing(logout)));
          expected.set(uid, (expected.get(uid) ?? 0) + 1);
          const until = performance.now() + REPORTED_WITHIN_MS;
          while (reportsOf(uid) < (expected.get(uid) ?? 0) && performance.now() < until) await pause(2);
          for (const each of ['ann', 'ben'])
            if (reportsOf(each) !== (expected.get(each) ?? 0)) {
              wrong.push(
                `round ${round}: ${uid} ${logout}: ${each} reported ${reportsOf(each)} of ${expected.get(each)}`,
              );
              expected.set(each, reportsOf(each));
            }
        }
        await scene.stop();
        const late = ['ann', 'ben'].filter((uid) => reportsOf(uid) !== (expected.get(uid) ?? 0));
        expect([...wrong, ...late]).toEqual([]);
      },
      3_600_000,
    );
  });

/** What somebody makes of the cookie of somebody else. */
const forgeries: readonly ((value: string, name: string, random: () => number) => string)[] = [
  (value, name) => `${name}=${value.slice(0, -1)}${value.endsWith('A') ? 'B' : 'A'}`,
  (value, name, random) => `${name}=${value.slice(0, Math.floor(random() * value.length))}`,
  (value, name) => `${name}=${value.replace(/\..*/, '')}`,
  (value, name) => `${name}=${value.replace(/\..*/, '.AAAA')}`,
  (value, name) => `${name}=${value.replace(/^s%3A/, '').replace(/\..*/, '')}`,
  (value, name) => `${name}="${value}`,
  (value, name) => `${name}=${value.toUpperCase()}`,
  (value, name) => `${name}=x${value}`,
  (value) => `theme=${value}`,
  (value) => `__proto__=${value}; constructor=${value}`,
];

describe.each(platforms)('on %s', (platform) => {
  it('cookies that nobody gave out log nobody out, and swallow no logout', async () => {
    const { url, cookieName } = await start(platform, new session.MemoryStore());
    const random = seeded(SEED);
    const alice = await logInTo({ url }, 'alice');
    await alice.post(doing('reads'));
    const value = (await alice.cookies()).replace(/^[^=]*=/, '');
    const stranger = new Browser(url);
    for (let round = 0; round < Math.max(100, ROUNDS); round += 1) {
      const forgery = forgeries[round % forgeries.length]?.(value, cookieName, random) ?? '';
      stranger.further = [one(oddCookies, random), forgery];
      for (const path of ['/before-sessions?clears', doing('clears'), doing(one(LOGOUTS, random))])
        await stranger.post(path);
    }
    expect(await alice.get('/whoami')).toBe('alice');
    const others = Array.from({ length: 10 }, (_, n) => `user-${n}`);
    for (const uid of others) {
      const browser = await logInTo({ url }, uid);
      browser.further = [...oddCookies, `theme=${value}`];
      await browser.post(doing(one(LOGOUTS, random)));
    }
    expect((await scene.logouts()).toSorted()).toEqual(others);
  }, 600_000);
});
