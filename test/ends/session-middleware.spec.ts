import { describe, expect, it } from '@jest/globals';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import express, { Router, type RequestHandler } from 'express';
import session from 'express-session';
import { fastify, type FastifyInstance } from 'fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import {
  AccountController,
  expressApp,
  fastifyApp,
  moduleOf,
  post,
  route,
  routes,
  sessionSettings,
  sessionsIn,
  type Import,
  type Plugin,
} from '#support/hosts/account.js';
import { Browser } from '#support/browser/browser.js';
import { starts, storeWith } from '#support/hosts/running-apps.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';

interface Mounting<Sessions> {
  readonly name: string;
  /** Whether its store has to be given: Express gives such an app's requests a prototype that has nothing of Nest's. */
  readonly hidden?: boolean;
  /** Where the routes are. */
  readonly at?: string;
  readonly create: (ours: DynamicModule, sessions: Sessions) => Promise<INestApplication>;
}

const onExpress: readonly Mounting<RequestHandler>[] = [
  { name: 'in main.ts', create: (ours, sessions) => expressApp([ours], (app) => app.use(sessions)) },
  {
    name: 'in configure() of the root module',
    create: (ours, sessions) => expressApp([], undefined, moduleOf([ours], sessions, [AccountController])),
  },
  {
    name: 'in a module that is imported later',
    create: (ours, sessions) => expressApp([ours, moduleOf([], sessions)]),
  },
  {
    name: 'in a module that is imported earlier',
    create: (ours, sessions) => expressApp([moduleOf([], sessions), ours]),
  },
  {
    name: 'in a module that imports ours',
    create: (ours, sessions) => expressApp([moduleOf([ours], sessions)]),
  },
  {
    name: 'in a module deep inside',
    create: (ours, sessions) => expressApp([ours, moduleOf([moduleOf([], sessions)])]),
  },
  {
    name: 'in a nested Express app',
    at: '/x',
    create: (ours, sessions) => expressApp([ours], (app) => app.use('/x', express().use(routes(sessions)))),
  },
  {
    name: 'in an Express app nested twice',
    at: '/x/y',
    create: (ours, sessions) =>
      expressApp([ours], (app) => app.use('/x', express().use('/y', express().use(routes(sessions))))),
  },
  {
    name: 'in an Express app nested in a router',
    hidden: true,
    at: '/x/y',
    create: (ours, sessions) =>
      expressApp([ours], (app) => app.use('/x', Router().use('/y', express().use(routes(sessions))))),
  },
  {
    name: 'in an Express app that a module applies',
    hidden: true,
    create: (ours, sessions) => expressApp([ours, moduleOf([], express().use(routes(sessions)))]),
  },
  {
    name: 'in a router',
    at: '/x',
    create: (ours, sessions) => expressApp([ours], (app) => app.use('/x', routes(sessions))),
  },
  {
    name: 'on the Express app that Nest was given',
    create: (ours, sessions) => expressApp([ours], undefined, undefined, express().use(sessions)),
  },
  {
    name: 'with its routes on the Express app that Nest was given',
    at: '/x',
    create: (ours, sessions) =>
      expressApp([ours], undefined, undefined, express().use('/x', routes(sessions))),
  },
  {
    name: 'under Test.createTestingModule()',
    create: async (ours, sessions) => {
      const imports = [moduleOf([ours], undefined, [AccountController])];
      const module = await Test.createTestingModule({ imports }).compile();
      return module.createNestApplication<NestExpressApplication>({ logger: false }).use(sessions);
    },
  },
];

/** A plugin with routes of its own. */
const inner =
  (sessions: Plugin, at = '/x'): Plugin =>
  async (instance) => {
    await sessions(instance);
    route(instance, at);
  };

async function given(
  prepare: (instance: FastifyInstance) => unknown,
  ours: DynamicModule,
): Promise<INestApplication> {
  const instance = fastify();
  await prepare(instance);
  return fastifyApp([ours], undefined, instance);
}

const onFastify: readonly Mounting<Plugin>[] = [
  { name: 'in main.ts', create: (ours, sessions) => fastifyApp([ours], sessions) },
  {
    name: 'in main.ts, with a route registered directly',
    at: '/x',
    create: (ours, sessions) => fastifyApp([ours], inner(sessions)),
  },
  {
    name: 'in a plugin with routes of its own',
    at: '/x',
    create: (ours, sessions) => fastifyApp([ours], (instance) => instance.register(inner(sessions))),
  },
  { name: 'on the instance that Nest was given', create: (ours, sessions) => given(sessions, ours) },
  {
    name: 'with its routes on the instance that Nest was given',
    at: '/x',
    create: (ours, sessions) => given(inner(sessions), ours),
  },
  {
    name: 'in a plugin of the instance that Nest was given',
    at: '/x',
    create: (ours, sessions) => given((instance) => void instance.register(inner(sessions)), ours),
  },
  {
    name: 'in a plugin of the instance that Nest was given, awaited',
    at: '/x',
    create: (ours, sessions) => given((instance) => instance.register(inner(sessions)), ours),
  },
  {
    name: 'under Test.createTestingModule()',
    create: async (ours, sessions) => {
      const imports = [moduleOf([ours], undefined, [AccountController])];
      const module = await Test.createTestingModule({ imports }).compile();
      const adapter = new FastifyAdapter();
      const app = module.createNestApplication<NestFastifyApplication>(adapter, { logger: false });
      await sessions(app.getHttpAdapter().getInstance());
      return app;
    },
  },
];

const scene = scenario();

const libraries: readonly Mounting<object>[] = [
  ...onExpress.map(({ name, create, ...more }) => ({
    ...more,
    name: `express-session ${name}`,
    create: (ours: DynamicModule, store: object) =>
      create(ours, session({ ...sessionSettings, store: store as session.Store })),
  })),
  ...onFastify.map(({ name, create, ...more }) => ({
    ...more,
    name: `@fastify/session ${name}`,
    create: (ours: DynamicModule, store: object) => create(ours, sessionsIn(store)),
  })),
];
const cases = libraries.flatMap((mounting) =>
  starts.filter(({ given }) => given || !mounting.hidden).map((start) => ({ ...mounting, ...start })),
);

it.each(cases)(
  '$name is watched, its store $store, and the first request after the start is $first',
  async ({ create, at = '', given, restart }) => {
    const rows = {};
    const start = (): Promise<string> => {
      const store = storeWith(rows);
      const ours = DebateSpaceModule.forRoot(using(scene.service, { session: given ? { store } : {} }));
      return scene.apps.listen(create(ours, store));
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

describe('several session libraries in one app', () => {
  const named = (name: string, path: string): RequestHandler =>
    session({ ...sessionSettings, store: new session.MemoryStore(), name, cookie: { path } });
  const plugin = (at: string): Plugin =>
    inner(sessionsIn(new session.MemoryStore(), `sid-of-${at.slice(1)}`), at);
  const layouts: {
    readonly name: string;
    readonly paths?: readonly [string, string];
    readonly create: (ours: DynamicModule) => Promise<INestApplication>;
  }[] = [
    {
      name: 'express-session with paths of their own',
      create: (ours) =>
        expressApp([ours], (app) => app.use('/admin', named('admin.sid', '/admin')).use(named('sid', '/'))),
    },
    {
      name: 'express-session whose cookies both go everywhere',
      create: (ours) =>
        expressApp([ours], (app) => app.use('/admin', named('admin.sid', '/')).use(named('sid', '/'))),
    },
    {
      name: 'express-session, one in a nested app',
      create: (ours) =>
        expressApp([ours], (app) =>
          app.use('/admin', express().use(routes(named('admin.sid', '/admin')))).use(named('sid', '/')),
        ),
    },
    {
      name: '@fastify/session in plugins of their own',
      paths: ['/one', '/two'],
      create: (ours) =>
        fastifyApp([ours], async (instance) => {
          for (const path of ['/one', '/two']) await instance.register(plugin(path));
        }),
    },
  ];
  const leaving = [
    { which: 'first', users: ['alice', 'bob'], left: ['nobody', 'bob'], reported: ['alice'] },
    { which: 'second', users: ['alice', 'bob'], left: ['alice', 'nobody'], reported: ['bob'] },
    { which: 'first', users: ['alice', 'alice'], left: ['nobody', 'alice'], reported: ['alice'] },
    { which: 'second', users: ['alice', 'alice'], left: ['alice', 'nobody'], reported: ['alice'] },
  ];

  it.each(layouts.flatMap((layout) => leaving.map((leave) => ({ ...leave, ...layout }))))(
    '$name, in a browser that is $users in them: the end of the $which is reported for its own user',
    async ({ paths: [one, other] = ['', '/admin'], which, users, left, reported, create }) => {
      const ours = DebateSpaceModule.forRoot(using(scene.service));
      const browser = new Browser(await scene.apps.listen(create(ours)));
      await post(browser, `${one}/login?uid=${users[0] ?? ''}`);
      await post(browser, `${other}/login?uid=${users[1] ?? ''}`);
      await post(browser, `${which === 'first' ? one : other}/logout`);
      expect([await browser.get(`${one}/whoami`), await browser.get(`${other}/whoami`)]).toEqual(left);
      expect(await scene.logouts()).toEqual(reported);
    },
  );
});

it('a store given in the options is watched before there is any request, and no other one is', async () => {
  const [given, other] = [storeWith({}), storeWith({})];
  const start = (imports: Import[]): Promise<string> =>
    scene.apps.listen(
      expressApp(imports, (app) => {
        app.use('/admin', session({ ...sessionSettings, store: other, cookie: { path: '/admin' } }));
        app.use(session({ ...sessionSettings, store: given }));
      }),
    );
  const browser = new Browser(await start([]));
  await post(browser, '/login?uid=alice');
  await post(browser, '/admin/login?uid=bob');
  const [sid = ''] = Object.keys(Reflect.get(given, 'sessions') as object);

  const ours = DebateSpaceModule.forRoot(using(scene.service, { session: { store: given } }));
  const origin = await start([ours]);
  await new Promise((resolve) => {
    given.destroy(sid, resolve);
  });
  await post(browser, `${origin}/admin/logout`);

  expect([await browser.get('/whoami'), await browser.get('/admin/whoami')]).toEqual(['nobody', 'nobody']);
  expect(await scene.logouts()).toEqual(['alice']);
});

it('two applications of one host on Fastify each report an end, and no renewal', async () => {
  const youth = await scene.startService({ applicationName: 'youth' });
  const ours = [
    DebateSpaceModule.forRoot(using(scene.service)),
    DebateSpaceModule.forRoot({ ...using(youth), name: 'youth' }),
  ];
  const creating = fastifyApp(ours, sessionsIn(new session.MemoryStore()));
  const browser = new Browser(await scene.apps.listen(creating));
  await post(browser, '/login?uid=alice');
  await post(browser, '/renew');
  expect(await browser.get('/whoami')).toBe('alice');
  await post(browser, '/logout');
  expect(await scene.logouts()).toEqual(['alice']);
  expect(youth.received.logouts).toEqual(['alice']);
});
