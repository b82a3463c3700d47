/** @jest-environment ./libs/debate-space-fixtures/src/native-require.environment.js */
import { describe, expect, it } from '@jest/globals';
import session from 'express-session';
import { Module } from '@nestjs/common';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { inject } from 'light-my-request';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import { Http2Browser } from 'debate-space-fixtures/http2-browser.js';
import { act, appOf, post, sessionsIn } from 'debate-space-fixtures/fastify-account.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';

declare const nativeRequire: NodeJS.Require;
/** What app.inject() is made of; jest cannot load it. */
const lightMyRequest = nativeRequire('light-my-request') as typeof inject;

const scene = scenario();

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** A hook of the host for one of its paths. */
function hooked(instance: FastifyInstance, name: 'onRequest', path: string, hook: Hook): void {
  instance.addHook(name, async (request, reply) => {
    if (request.url === path) await hook(request, reply);
  });
}

describe('the end or the renewal of a Fastify session outside the handlers of Nest', () => {
  const answered =
    (work: (request: FastifyRequest) => Promise<unknown>): Hook =>
    async (request, reply) => {
      await work(request);
      return reply.send('answered by the hook');
    };
  const early = ['onRequest', 'preParsing', 'preValidation', 'preHandler'];
  const late = ['onSend', 'onResponse'];
  const hooks = [
    ...early.map((hook) => ({
      name: `${hook} that answers automatically`,
      hook,
      work: answered(act.logout),
      ends: true,
    })),
    ...early.map((hook) => ({
      name: `${hook} that renews it and answers automatically`,
      hook,
      work: answered(act.renew),
      ends: false,
    })),
    ...early.map((hook) => ({ name: `${hook} that renews it`, hook, work: act.renew, ends: false })),
    ...late.map((hook) => ({ name: hook, hook, work: act.logout, ends: true })),
  ];
  const instances = [
    { when: 'of the instance that Nest made', given: false },
    { when: 'of the instance that Nest was given', given: true },
  ];
  // A hook that is older than ours and lets nobody after it run: what it renews looks like an end.
  const unseen = ({ hook, ends, given }: { hook: string; ends: boolean; given: boolean }): boolean =>
    hook === 'onRequest' && !ends && given;
  const cases = hooks.flatMap((hook) =>
    instances.map((instance) => ({ ...hook, ...instance })).filter((each) => !unseen(each)),
  );

  it.each(cases)('is recognized in the hook $name, $when', async ({ hook, work, ends, given }) => {
    const ours = DebateSpaceModule.forRoot(using(scene.service));
    const instance = fastify();
    const main = async (on: FastifyInstance): Promise<void> => {
      await sessionsIn(new session.MemoryStore())(on);
      hooked(on, hook as 'onRequest', '/hooked', work);
    };
    if (given) await main(instance);
    const browser = new Browser(
      await scene.apps.listen(given ? appOf(ours, undefined, instance) : appOf(ours, main)),
    );
    await post(browser, '/login?uid=alice');
    await browser.get('/hooked');
    if (hook === 'onResponse') await scene.service.received.waitFor('logout'); // nobody waits for such a hook
    expect(await browser.get('/whoami')).toBe(ends ? 'nobody' : 'alice');
    expect(await scene.logouts()).toEqual(ends ? ['alice'] : []);
  });

  it('is recognized in a route that takes the reply into its own hands', async () => {
    const ours = DebateSpaceModule.forRoot(using(scene.service));
    const create = appOf(ours, async (instance) => {
      await sessionsIn(new session.MemoryStore())(instance);
      instance.get('/hijacked', async (request, reply) => {
        reply.hijack();
        await act.logout(request);
        reply.raw.writeHead(204).end();
      });
    });
    const browser = new Browser(await scene.apps.listen(create));
    await post(browser, '/login?uid=alice');
    await browser.get('/hijacked');
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice']);
  });

  it.each(['logout', 'renew'] as const)(
    'is recognized under app.inject(), which has no server: %s',
    async (step) => {
      const create = appOf(
        DebateSpaceModule.forRoot(using(scene.service)),
        sessionsIn(new session.MemoryStore()),
      );
      const app = await scene.apps.add(create);
      await app.init();
      const instance = app.getHttpAdapter().getInstance();
      await instance.ready();
      let headers = {};
      const inject = async (method: 'GET' | 'POST', url: string): Promise<string> => {
        const dispatch = (request: IncomingMessage, response: ServerResponse): void => {
          instance.routing(request, response);
        };
        const response = await lightMyRequest(dispatch, { method, url, headers });
        for (const { name, value } of response.cookies)
          headers = { cookie: `${name}=${encodeURIComponent(value)}` };
        return response.body;
      };
      await inject('POST', '/login?uid=alice');
      await inject('POST', `/${step}`);
      expect(await inject('GET', '/whoami')).toBe(step === 'renew' ? 'alice' : 'nobody');
      expect(await scene.logouts()).toEqual(step === 'renew' ? [] : ['alice']);
    },
  );

  it.each(['logout', 'renew'] as const)('is recognized over HTTP/2: %s', async (step) => {
    const instance = fastify({ http2: true }) as unknown as FastifyInstance;
    const ours = DebateSpaceModule.forRoot(using(scene.service));
    const url = await scene.apps.listen(appOf(ours, sessionsIn(new session.MemoryStore()), instance));
    const browser = new Http2Browser(url);
    await browser.request('POST', '/login?uid=alice');
    await browser.request('POST', `/${step}`);
    expect(await browser.request('GET', '/whoami')).toBe(step === 'renew' ? 'alice' : 'nobody');
    await browser.close();
    expect(await scene.logouts()).toEqual(step === 'renew' ? [] : ['alice']);
  });
});

it.each([
  { host: 'a host with the plugin', isOurs: true },
  { host: 'a host without it', isOurs: false },
])(
  'a request of $host has its session; it is an own property only without the plugin',
  async ({ isOurs }) => {
    @Module({})
    class Nothing {}
    const seen: boolean[][] = [];
    const look: Hook = (request) => {
      const copy: { session?: unknown } = { ...request };
      seen.push([
        Object.hasOwn(request, 'session'),
        Object.keys(request).includes('session'),
        copy.session !== undefined,
      ]);
      return Promise.resolve();
    };
    const create = appOf(
      isOurs ? DebateSpaceModule.forRoot(using(scene.service)) : { module: Nothing },
      async (instance) => {
        await sessionsIn(new session.MemoryStore())(instance);
        hooked(instance, 'preHandler' as 'onRequest', '/whoami', look);
      },
    );
    const browser = new Browser(await scene.apps.listen(create));
    await post(browser, '/login?uid=alice');
    expect(await browser.get('/whoami')).toBe('alice');
    const isOwn = !isOurs; // docs/sessions.md says so
    expect(seen).toEqual([[isOwn, isOwn, isOwn]]);
  },
);
