import { describe, expect, it } from '@jest/globals';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import express, { Router, type RequestHandler } from 'express';
import session from 'express-session';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import {
  AccountController,
  appOf,
  moduleOf,
  routes,
  settings,
  type Import,
} from 'debate-space-fixtures/express-account.js';
import { starts, storeWith } from 'debate-space-fixtures/running-apps.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';

interface Mounting {
  readonly name: string;
  /** Whether its store has to be given: Express gives such an app's requests a prototype that has nothing of Nest's. */
  readonly hidden?: boolean;
  /** Where the routes are. */
  readonly at?: string;
  readonly create: (ours: DynamicModule, sessions: RequestHandler) => Promise<INestApplication>;
}

const mountings: readonly Mounting[] = [
  { name: 'in main.ts', create: (ours, sessions) => appOf([ours], (app) => app.use(sessions)) },
  {
    name: 'in configure() of the root module',
    create: (ours, sessions) => appOf([], undefined, moduleOf([ours], sessions, [AccountController])),
  },
  {
    name: 'in a module that is imported later',
    create: (ours, sessions) => appOf([ours, moduleOf([], sessions)]),
  },
  {
    name: 'in a module that is imported earlier',
    create: (ours, sessions) => appOf([moduleOf([], sessions), ours]),
  },
  { name: 'in a module that imports ours', create: (ours, sessions) => appOf([moduleOf([ours], sessions)]) },
  {
    name: 'in a module deep inside',
    create: (ours, sessions) => appOf([ours, moduleOf([moduleOf([], sessions)])]),
  },
  {
    name: 'in a nested Express app',
    at: '/x',
    create: (ours, sessions) => appOf([ours], (app) => app.use('/x', express().use(routes(sessions)))),
  },
  {
    name: 'in an Express app nested twice',
    at: '/x/y',
    create: (ours, sessions) =>
      appOf([ours], (app) => app.use('/x', express().use('/y', express().use(routes(sessions))))),
  },
  {
    name: 'in an Express app nested in a router',
    hidden: true,
    at: '/x/y',
    create: (ours, sessions) =>
      appOf([ours], (app) => app.use('/x', Router().use('/y', express().use(routes(sessions))))),
  },
  {
    name: 'in an Express app that a module applies',
    hidden: true,
    create: (ours, sessions) => appOf([ours, moduleOf([], express().use(routes(sessions)))]),
  },
  {
    name: 'in a router',
    at: '/x',
    create: (ours, sessions) => appOf([ours], (app) => app.use('/x', routes(sessions))),
  },
  {
    name: 'on the Express app that Nest was given',
    create: (ours, sessions) => appOf([ours], undefined, undefined, express().use(sessions)),
  },
  {
    name: 'with its routes on the Express app that Nest was given',
    at: '/x',
    create: (ours, sessions) => appOf([ours], undefined, undefined, express().use('/x', routes(sessions))),
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

const scene = scenario();

const cases = mountings.flatMap((mounting) =>
  starts.filter(({ given }) => given || !mounting.hidden).map((start) => ({ ...mounting, ...start })),
);

describe('express-session', () => {
  it.each(cases)(
    'is watched when mounted $name, its store $store, and the first request after the start is $first',
    async ({ create, at = '', given, restart }) => {
      const rows = {};
      const start = (): Promise<string> => {
        const store = storeWith(rows);
        const ours = DebateSpaceModule.forRoot(using(scene.service, { session: given ? { store } : {} }));
        return scene.apps.listen(create(ours, session({ ...settings, store })));
      };
      const url = await start();
      const browser = new Browser(url);
      await browser.post(`${at}/login?uid=alice`);
      expect(await browser.get(`${at}/whoami`)).toBe('alice');
      if (restart) expect(await scene.logouts()).toEqual([]);
      const origin = restart ? await start() : url;

      await browser.post(`${origin}${at}/logout`);

      expect(await browser.get(`${origin}${at}/whoami`)).toBe('nobody');
      expect(await scene.logouts()).toEqual(['alice']);
    },
  );
});

describe('several express-sessions in one app', () => {
  const named = (name: string, path: string): RequestHandler =>
    session({ ...settings, store: new session.MemoryStore(), name, cookie: { path } });
  const layouts: { readonly name: string; readonly mount: (app: NestExpressApplication) => unknown }[] = [
    {
      name: 'with paths of their own',
      mount: (app) => app.use('/admin', named('admin.sid', '/admin')).use(named('sid', '/')),
    },
    {
      name: 'whose cookies both go everywhere',
      mount: (app) => app.use('/admin', named('admin.sid', '/')).use(named('sid', '/')),
    },
    {
      name: 'one in a nested app',
      mount: (app) =>
        app.use('/admin', express().use(routes(named('admin.sid', '/admin')))).use(named('sid', '/')),
    },
  ];
  const leaving = [
    { path: '', users: ['alice', 'bob'], left: ['nobody', 'bob'], reported: ['alice'] },
    { path: '/admin', users: ['alice', 'bob'], left: ['alice', 'nobody'], reported: ['bob'] },
    { path: '', users: ['alice', 'alice'], left: ['nobody', 'alice'], reported: ['alice'] },
    { path: '/admin', users: ['alice', 'alice'], left: ['alice', 'nobody'], reported: ['alice'] },
  ];
  const cases = layouts.flatMap((layout) => leaving.map((leave) => ({ ...leave, ...layout })));

  it.each(cases)(
    '$name, in a browser that is $users in them: the end at "$path/" is reported for its own user',
    async ({ path, users, left, reported, mount }) => {
      const ours = DebateSpaceModule.forRoot(using(scene.service));
      const browser = new Browser(await scene.apps.listen(appOf([ours], mount)));
      await browser.post(`/login?uid=${users[0] ?? ''}`);
      await browser.post(`/admin/login?uid=${users[1] ?? ''}`);
      await browser.post(`${path}/logout`);
      expect([await browser.get('/whoami'), await browser.get('/admin/whoami')]).toEqual(left);
      expect(await scene.logouts()).toEqual(reported);
    },
  );
});

describe('a store given in the options', () => {
  it('is watched before there is any request, and no other one is', async () => {
    const [given, other] = [storeWith({}), storeWith({})];
    const start = (imports: Import[]): Promise<string> =>
      scene.apps.listen(
        appOf(imports, (app) => {
          app.use('/admin', session({ ...settings, store: other, cookie: { path: '/admin' } }));
          app.use(session({ ...settings, store: given }));
        }),
      );
    const browser = new Browser(await start([]));
    await browser.post('/login?uid=alice');
    await browser.post('/admin/login?uid=bob');
    const [sid = ''] = Object.keys(Reflect.get(given, 'sessions') as object);

    const origin = await start([
      DebateSpaceModule.forRoot(using(scene.service, { session: { store: given } })),
    ]);
    await new Promise((resolve) => {
      given.destroy(sid, resolve);
    });
    await browser.post(`${origin}/admin/logout`);

    expect([await browser.get('/whoami'), await browser.get('/admin/whoami')]).toEqual(['nobody', 'nobody']);
    expect(await scene.logouts()).toEqual(['alice']);
  });
});
