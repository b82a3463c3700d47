/** @jest-environment ./libs/debate-space-fixtures/src/native-require.environment.js */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import * as nestCommon from '@nestjs/common';
import { Controller, Get, Module, Req, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import type { Request } from 'express';
import session from 'express-session';
import { DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import type { RequestListener } from 'node:http';
import * as client from 'openid-client';
import * as clientPassport from 'openid-client/passport';
import passport from 'passport';
import { Browser } from 'debate-space-fixtures/browser.js';
import { pageOf, runSnippet } from 'debate-space-fixtures/docs-snippets.js';
import { identityProvider, Place } from 'debate-space-fixtures/identity-provider.js';
import { startService, using } from 'debate-space-fixtures/service.js';

const page = pageOf('docs/identity-providers.md');
/** The client by which the debate space logs its users in, as it is natural: a name and a secret of its own, RS256. */
const debateClient = {
  client_id: 'debate-space',
  client_secret: 'the secret of the debate space at the provider',
};
const hostClient = { client_id: 'my-app', client_secret: 'the secret of the app at the provider' };

type LoggedIn = Request & { session: { user?: { uid: string } }; user?: { uid: string } };

@Controller()
class HomeController {
  @Get()
  home(@Req() { session: { user }, user: ofPassport }: LoggedIn): string {
    return (user ?? ofPassport)?.uid ?? 'nobody';
  }
}

let issuer: Place;
let host: Place;
let service: DebateSpaceSimulator;
let app: NestExpressApplication | undefined;
let notified: string[];
const environment = { ...process.env };
beforeEach(async () => {
  issuer = await Place.take();
  host = await Place.take();
  notified = [];
});
afterEach(async () => {
  await app?.close();
  app = undefined;
  await host.leave();
  await issuer.leave();
  await service.stop();
  process.env = { ...environment };
  jest.restoreAllMocks();
});

/** The snippet with the issuer of this test, which has no TLS. */
function recipe(path: string): Record<string, unknown> {
  const { client_id: CLIENT_ID, client_secret: CLIENT_SECRET } = hostClient;
  Object.assign(process.env, { APP_URL: host.url, ISSUER_URL: issuer.url, CLIENT_ID, CLIENT_SECRET });
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- only marked so that nobody uses it elsewhere
  const execute = [client.allowInsecureRequests];
  const discovery = (url: URL, id: string, secret: string): Promise<client.Configuration> =>
    client.discovery(url, id, secret, undefined, { execute });
  return runSnippet(page, path, {
    '@nestjs/common': nestCommon,
    'openid-client': { ...client, discovery },
    'openid-client/passport': clientPassport,
    passport,
  });
}

async function start(algorithm: 'RS256' | 'HS256', kind: 'openid-client' | 'passport'): Promise<Browser> {
  const secret = algorithm === 'HS256' ? { clientSecret: debateClient.client_secret } : {};
  service = await startService({
    applicationName: 'my-app',
    identityProvider: { issuer: issuer.url, clientId: debateClient.client_id, ...secret },
  });
  const provider = await identityProvider(issuer, [
    {
      ...hostClient,
      redirect_uris: [`${host.url}/auth/callback`],
      post_logout_redirect_uris: [host.url],
    },
    {
      ...debateClient,
      redirect_uris: [service.url],
      id_token_signed_response_alg: algorithm,
      backchannel_logout_uri: service.logoutUrl,
    },
  ]);
  provider.on('backchannel.success', (_, { clientId }, sub) => notified.push(`${clientId}: ${sub}`));
  provider.on('backchannel.error', (_, error) => notified.push(error.message));

  const controllers: Type[] = [HomeController];
  if (kind === 'openid-client')
    controllers.push(recipe('src/auth/auth.controller.ts').AuthController as Type);
  const debateSpace = using(service, { logout: { mode: 'oidc' } });
  @Module({ imports: [DebateSpaceModule.forRoot(debateSpace)], controllers })
  class App {}
  app = await NestFactory.create<NestExpressApplication>(App, { logger: false });
  app.use(session({ secret: 'only for tests', resave: false, saveUninitialized: false }));
  if (kind === 'passport') {
    app.use(passport.session());
    const { useOpenIdConnect } = recipe('src/auth/use-openid-connect.ts');
    await (useOpenIdConnect as (app: NestExpressApplication) => Promise<void>)(app);
  }
  await app.init();
  host.serve(app.getHttpAdapter().getInstance() as RequestListener);
  expect(app.get(DebateSpaceService).backchannelLogoutUrl).toBe(service.logoutUrl);
  return new Browser(host.url);
}

/** Goes where it is sent, and returns the page in the end. */
async function visit(browser: Browser, url: string, init?: RequestInit): Promise<string> {
  const response = await browser.fetch(url, init);
  const location = response.headers.get('location');
  return location === null ? response.text() : visit(browser, new URL(location, url).href);
}

async function enterDebateSpace(browser: Browser): Promise<void> {
  const { client_id } = debateClient;
  const parameters = { client_id, redirect_uri: service.url, response_type: 'code', scope: 'openid' };
  const there = await visit(browser, `${issuer.url}/auth?${new URLSearchParams(parameters).toString()}`);
  expect(there).toContain('Debate space');
  service.debate.signIn('alice');
}

/** At the identity provider's page that asks whether to log out there as well. */
async function confirm(browser: Browser, there: string, answer: object): Promise<string> {
  const [, action = ''] = /action="(.+?)"/.exec(there) ?? [];
  const [, xsrf = ''] = /name="xsrf" value="(.+?)"/.exec(there) ?? [];
  return visit(browser, action, { method: 'POST', body: new URLSearchParams({ xsrf, ...answer }) });
}

describe('a host with its own identity provider', () => {
  it.each([
    { kind: 'openid-client', algorithm: 'RS256' },
    { kind: 'openid-client', algorithm: 'HS256' },
    { kind: 'passport', algorithm: 'RS256' },
  ] as const)(
    'has its user signed out of the debate space by a logout at the provider: $kind, $algorithm',
    async ({ kind, algorithm }) => {
      const browser = await start(algorithm, kind);
      expect(await visit(browser, `${host.url}/auth/login`)).toBe('alice');
      await enterDebateSpace(browser);
      const there = await visit(browser, `${host.url}/auth/logout`, { method: 'POST' });
      expect(service.debate.isSignedIn('alice')).toBe(true);
      expect(await confirm(browser, there, { logout: 'yes' })).toBe('nobody');
      expect(notified).toEqual(['debate-space: alice']);
      expect(service.debate.isSignedIn('alice')).toBe(false);
      const [logout, ...others] = service.received.of('logout');
      expect(others).toEqual([]);
      expect(logout).toMatchObject({
        accepted: true,
        claims: { iss: issuer.url, aud: 'debate-space', sub: 'alice' },
      });
    },
  );

  it('has its own tokens accepted as well, for logouts that it requests itself', async () => {
    await start('RS256', 'openid-client');
    service.debate.signIn('bob');
    await app?.get(DebateSpaceService).logoutUser('bob');
    await service.received.waitFor('logout');
    expect(service.received.of('logout')).toMatchObject([
      { accepted: true, claims: { iss: 'my-app', sub: 'bob' } },
    ]);
  });
});
