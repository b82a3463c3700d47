import { describe, expect, it } from '@jest/globals';
import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import session from 'express-session';
import { fastify } from 'fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import {
  appOf,
  moduleOf,
  post,
  route,
  sessionsIn,
  type Plugin,
} from 'debate-space-fixtures/fastify-account.js';
import { starts, storeWith } from 'debate-space-fixtures/running-apps.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';

interface Mounting {
  readonly name: string;
  /** Where the routes are. */
  readonly at?: string;
  readonly create: (ours: DynamicModule, sessions: Plugin) => Promise<NestFastifyApplication>;
}

const mountings: readonly Mounting[] = [
  { name: 'in main.ts', create: (ours, sessions) => appOf(ours, sessions) },
  {
    name: 'in main.ts, with a route registered directly',
    at: '/x',
    create: (ours, sessions) =>
      appOf(ours, async (instance) => {
        await sessions(instance);
        route(instance, '/x');
      }),
  },
  {
    name: 'in a plugin with routes of its own',
    at: '/x',
    create: (ours, sessions) =>
      appOf(ours, (instance) =>
        instance.register(async (inner) => {
          await sessions(inner);
          route(inner, '/x');
        }),
      ),
  },
  {
    name: 'on the instance that Nest was given',
    create: async (ours, sessions) => {
      const instance = fastify();
      await sessions(instance);
      return appOf(ours, undefined, instance);
    },
  },
  {
    name: 'with its routes on the instance that Nest was given',
    at: '/x',
    create: async (ours, sessions) => {
      const instance = fastify();
      await sessions(instance);
      route(instance, '/x');
      return appOf(ours, undefined, instance);
    },
  },
  {
    name: 'in a plugin of the instance that Nest was given',
    at: '/x',
    create: async (ours, sessions) => {
      const instance = fastify();
      void instance.register(async (inner) => {
        await sessions(inner);
        route(inner, '/x');
      });
      return appOf(ours, undefined, instance);
    },
  },
  {
    name: 'in a plugin of the instance that Nest was given, awaited',
    at: '/x',
    create: async (ours, sessions) => {
      const instance = fastify();
      await instance.register(async (inner) => {
        await sessions(inner);
        route(inner, '/x');
      });
      return appOf(ours, undefined, instance);
    },
  },
  {
    name: 'under Test.createTestingModule()',
    create: async (ours, sessions) => {
      const module = await Test.createTestingModule({ imports: [moduleOf(ours)] }).compile();
      const app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter(), {
        logger: false,
      });
      await sessions(app.getHttpAdapter().getInstance());
      return app;
    },
  },
];

const scene = scenario();

const cases = mountings.flatMap((mounting) => starts.map((start) => ({ ...mounting, ...start })));

describe('@fastify/session', () => {
  it.each(cases)(
    'is watched when registered $name, its store $store, and the first request after the start is $first',
    async ({ create, at = '', given, restart }) => {
      const rows = {};
      const start = (): Promise<string> => {
        const store = storeWith(rows);
        const ours = DebateSpaceModule.forRoot(using(scene.service, { session: given ? { store } : {} }));
        return scene.apps.listen(create(ours, sessionsIn(store)));
      };
      const url = await start();
      const browser = new Browser(url);
      await post(browser, `${at}/login?uid=alice`);
      expect(await browser.get(`${at}/whoami`)).toBe('alice');
      await post(browser, `${at}/renew`);
      expect(await browser.get(`${at}/whoami`)).toBe('alice');
      if (restart) expect(await scene.logouts()).toEqual([]);
      const origin = restart ? await start() : url;

      await post(browser, `${origin}${at}/logout`);

      expect(await browser.get(`${origin}${at}/whoami`)).toBe('nobody');
      expect(await scene.logouts()).toEqual(['alice']);
    },
  );
});

describe('several @fastify/sessions in one app', () => {
  const leaving = [
    { at: '/one', users: ['alice', 'bob'], left: ['nobody', 'bob'], reported: ['alice'] },
    { at: '/two', users: ['alice', 'bob'], left: ['alice', 'nobody'], reported: ['bob'] },
    { at: '/one', users: ['alice', 'alice'], left: ['nobody', 'alice'], reported: ['alice'] },
  ];
  it.each(leaving)(
    'in a browser that is $users in them: the end at $at is reported for its own user',
    async ({ at, users, left, reported }) => {
      const ours = DebateSpaceModule.forRoot(using(scene.service));
      const create = appOf(ours, async (instance) => {
        for (const path of ['/one', '/two']) {
          await instance.register(async (inner) => {
            await sessionsIn(new session.MemoryStore(), `sid-of-${path.slice(1)}`)(inner);
            route(inner, path);
          });
        }
      });
      const browser = new Browser(await scene.apps.listen(create));
      await post(browser, `/one/login?uid=${users[0] ?? ''}`);
      await post(browser, `/two/login?uid=${users[1] ?? ''}`);
      await post(browser, `${at}/logout`);
      expect([await browser.get('/one/whoami'), await browser.get('/two/whoami')]).toEqual(left);
      expect(await scene.logouts()).toEqual(reported);
    },
  );
});

it('two applications of one host on Fastify each report an end, and no renewal', async () => {
  const youth = await scene.startService({ applicationName: 'youth' });
  const both = moduleOf(DebateSpaceModule.forRoot(using(scene.service)));
  const create = async (): Promise<NestFastifyApplication> => {
    @Module({ imports: [both, DebateSpaceModule.forRoot({ ...using(youth), name: 'youth' })] })
    class App {}
    const app = await NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), {
      logger: false,
    });
    await sessionsIn(new session.MemoryStore())(app.getHttpAdapter().getInstance());
    return app;
  };
  const browser = new Browser(await scene.apps.listen(create()));
  await post(browser, '/login?uid=alice');
  await post(browser, '/renew');
  expect(await browser.get('/whoami')).toBe('alice');
  await post(browser, '/logout');
  expect(await scene.logouts()).toEqual(['alice']);
  expect(youth.received.logouts).toEqual(['alice']);
});
