import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Module, Post, Res } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Response } from 'express';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DebateSpaceModule, type SessionCookie } from 'nestjs-debate-space';
import { Browser, logInTo } from '#support/browser/browser.js';
import { cookieHosts, type CookieHost, type CookieHostOptions } from '#support/hosts/cookie-hosts.js';
import type { EndingHost } from '#support/endings/endings.js';
import { eventsOf } from '#support/hosts/events.js';
import { Latch } from '#support/latch.js';
import { scenario } from '#support/hosts/scenario.js';
import { using } from '#support/service/service.js';

const scene = scenario();

function start(kind: CookieHost, options: Partial<CookieHostOptions> = {}): Promise<EndingHost> {
  const act: CookieHostOptions['act'] = ({ logOut }) => logOut();
  return scene.add(kind.start({ debateSpace: using(scene.service), act, ...options }));
}

async function logInAlice(host: EndingHost): Promise<Browser> {
  const browser = await logInTo(host, 'alice');
  expect(await browser.get('/whoami')).toBe('alice');
  return browser;
}

/** What somebody sends who is not alice; `genuine` are her cookies. */
const forgeries: { readonly name: string; readonly forge: (genuine: readonly string[]) => string }[] = [
  { name: 'garbage', forge: () => 'session=garbage; session.sig=garbage' },
  {
    name: 'cookies of hers with a wrong signature',
    forge: (genuine) =>
      genuine.map((cookie, n) => (n === genuine.length - 1 ? changed(cookie) : cookie)).join('; '),
  },
  {
    name: 'her uid without a signature',
    forge: () => `session=${Buffer.from('{"user":"alice"}').toString('base64')}`,
  },
  {
    name: 'a JWT of hers without an algorithm',
    forge: () =>
      `session=${[{ alg: 'none' }, { sub: 'alice' }].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.`,
  },
];

/** Another letter in the middle of the second half of a value, where all of them count. */
function changed(cookie: string): string {
  const at = Math.floor(cookie.length * 0.75);
  return cookie.slice(0, at) + (cookie[at] === 'A' ? 'B' : 'A') + cookie.slice(at + 1);
}

describe.each(cookieHosts)('on $name:', (kind) => {
  it.each(forgeries)('$name in a logout logs nobody out', async ({ forge }) => {
    const { url } = await start(kind);
    const entered = await fetch(`${url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ uid: 'alice' }),
    });
    const genuine = entered.headers.getSetCookie().map((cookie) => cookie.split(';')[0] ?? '');
    const cookie = forge(genuine);
    expect(await (await fetch(`${url}/whoami`, { headers: { cookie } })).text()).toBe('nobody');
    await fetch(`${url}/act`, { method: 'POST', headers: { cookie } });
    expect(await scene.logouts()).toEqual([]);
  });

  it('two clicks at the same time with the same cookie log out their user alone, each once', async () => {
    const bothIn = new Latch(2);
    const act: CookieHostOptions['act'] = async ({ logOut }) => {
      bothIn.open();
      await bothIn.passed;
      await logOut();
    };
    const browser = await logInAlice(await start(kind, { act }));
    await Promise.all([browser.post('/act'), browser.post('/act')]);
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual(['alice', 'alice']);
  });

  it('the same user on two devices, whose cookies may be the same, is reported for each', async () => {
    const host = await start(kind);
    const [phone, desk] = [await logInAlice(host), await logInAlice(host)];
    await phone.post('/act');
    expect(await desk.get('/whoami')).toBe('alice');
    await desk.post('/act');
    expect(await scene.logouts()).toEqual(['alice', 'alice']);
  });

  const failures: { readonly name: string; readonly uid: SessionCookie['uid'] }[] = [
    {
      name: 'throws',
      uid: () => {
        throw new TypeError('no such field');
      },
    },
    { name: 'rejects', uid: () => Promise.reject(new TypeError('no such field')) },
  ];
  it.each(failures)('a uid function that $name emits a fault, and the host continues', async ({ uid }) => {
    const host = await start(kind, { cookie: (own) => ({ ...own, uid }) });
    const browser = await logInAlice(host);
    const events = eventsOf(host.app);
    expect(await browser.post('/act')).toBe('done');
    expect(await browser.get('/whoami')).toBe('nobody');
    expect(await scene.logouts()).toEqual([]);
    expect(events).toContainEqual({ type: 'fault', where: 'session.cookies', error: 'TypeError' });
  });
});

describe('a uid function that never answers', () => {
  afterEach(() => void jest.useRealTimers());

  it('delays no response, and the shutdown by a second and a half', async () => {
    const [kind] = cookieHosts as [CookieHost];
    const never = new Promise<never>(() => undefined);
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    const browser = await logInAlice(await start(kind, { cookie: (own) => ({ ...own, uid: () => never }) }));
    expect(await browser.post('/act')).toBe('done');
    expect(await browser.get('/whoami')).toBe('nobody');
    const stopped = jest.fn();
    const stopping = scene.stop().then(stopped);
    await jest.advanceTimersByTimeAsync(1_400);
    expect(stopped).not.toHaveBeenCalled();
    await jest.advanceTimersByTimeAsync(200);
    await stopping;
    expect(scene.service.received.logouts).toEqual([]);
  });
});

@Controller()
class LogoutController {
  @Post('logout')
  logout(@Res({ passthrough: true }) response: Response): string {
    response.clearCookie('session');
    return 'bye';
  }
}

// As NestJS documents it for several servers at the same time; hosts without a server are like it.
it('a session cookie is seen on servers that are not Nest’s own', async () => {
  const cookies = [{ name: 'session', uid: (value: string) => value }];
  @Module({
    imports: [DebateSpaceModule.forRoot(using(scene.service, { session: { cookies } }))],
    controllers: [LogoutController],
  })
  class App {}
  const handler = express();
  const creating = NestFactory.create(App, new ExpressAdapter(handler), { logger: false });
  const app = await scene.apps.add(creating);
  await app.init();
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await fetch(`http://127.0.0.1:${port}/logout`, { method: 'POST', headers: { cookie: 'session=alice' } });
  server.closeAllConnections();
  server.close();
  expect(await scene.logouts()).toEqual(['alice']);
});
