/** @jest-environment ./test/support/process/native-require.environment.js */
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Module, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import type { Request } from 'express';
import type * as ExpressOpenIdConnect from 'express-openid-connect';
import session from 'express-session';
import { DebateSpaceModule, DebateSpaceService } from 'nestjs-debate-space';
import type { RequestListener } from 'node:http';
import { Browser } from '#support/browser/browser.js';
import { identityProvider, Place } from './identity-provider.js';
import { keys, startService, using } from '#support/service/service.js';

declare const nativeRequire: NodeJS.Require;
const { auth } = nativeRequire('express-openid-connect') as typeof ExpressOpenIdConnect;

@Controller()
class HomeController {
  @Get()
  home(@Req() { oidc }: Request): string {
    return String(oidc.user?.sub ?? 'nobody');
  }
}

const hostClient = { client_id: 'host', client_secret: 'the secret of the host at its provider' };

let issuer: Place;
let host: Place;
let service: DebateSpaceSimulator;
let app: NestExpressApplication;
let notified: string[];
beforeEach(async () => {
  issuer = await Place.take();
  host = await Place.take();
  // The simulator takes the application's name for `iss`; here that is the identity provider's.
  service = await startService({ applicationName: issuer.url });
});
afterEach(async () => {
  await host.leave();
  await issuer.leave();
  await service.stop();
});

async function start(options: Partial<ExpressOpenIdConnect.ConfigParams>): Promise<Browser> {
  const store = new session.MemoryStore();
  const debateSpace = using(service, { logout: { mode: 'oidc' } });
  @Module({ imports: [DebateSpaceModule.forRoot(debateSpace)], controllers: [HomeController] })
  class App {}
  app = await NestFactory.create<NestExpressApplication>(App, { logger: false });
  const openIdConnect = auth({
    issuerBaseURL: issuer.url,
    baseURL: host.url,
    clientID: hostClient.client_id,
    clientSecret: hostClient.client_secret,
    secret: 'a secret for the cookies of the host',
    authorizationParams: { response_type: 'code', scope: 'openid' },
    authRequired: false,
    session: { store: store as unknown as ExpressOpenIdConnect.SessionStore<never> },
    ...options,
  });
  app.use(openIdConnect);
  await app.init();
  host.serve(app.getHttpAdapter().getInstance() as RequestListener);

  notified = [];
  const provider = await identityProvider(issuer, [
    { ...hostClient, redirect_uris: [`${host.url}/callback`], post_logout_redirect_uris: [host.url] },
    {
      client_id: keys.apiKey,
      client_secret: keys.secretKey,
      redirect_uris: [service.url],
      id_token_signed_response_alg: 'HS256',
      backchannel_logout_uri: app.get(DebateSpaceService).backchannelLogoutUrl,
    },
  ]);
  provider.on('backchannel.success', (_, client, sub) => notified.push(`${client.clientId}: ${sub}`));
  provider.on('backchannel.error', (_, error) => notified.push(error.message));
  return new Browser(host.url);
}

/** Goes where it is sent, and returns the page in the end. */
async function visit(browser: Browser, url: string, init?: RequestInit): Promise<string> {
  const response = await browser.fetch(url, init);
  const location = response.headers.get('location');
  return location === null ? response.text() : visit(browser, new URL(location, url).href);
}

async function enterDebateSpace(browser: Browser): Promise<void> {
  const parameters = {
    client_id: keys.apiKey,
    redirect_uri: service.url,
    response_type: 'code',
    scope: 'openid',
  };
  const page = await visit(browser, `${issuer.url}/auth?${new URLSearchParams(parameters).toString()}`);
  expect(page).toContain('Debate space');
  service.debate.signIn('alice');
}

/** At the identity provider's page that asks whether to log out there as well. */
async function confirm(browser: Browser, page: string, answer: object): Promise<string> {
  const [, action = ''] = /action="(.+?)"/.exec(page) ?? [];
  const [, xsrf = ''] = /name="xsrf" value="(.+?)"/.exec(page) ?? [];
  return visit(browser, action, { method: 'POST', body: new URLSearchParams({ xsrf, ...answer }) });
}

describe('a host with express-openid-connect', () => {
  const toldByProvider = [`${keys.apiKey}: alice`];
  it.each([
    {
      name: 'ends the debate session by its identity provider, and by it alone',
      visitsDebate: true,
      answer: { logout: 'yes' },
      reported: toldByProvider,
      logouts: ['alice'],
    },
    {
      name: 'ends nothing while the user stays logged in at the identity provider',
      visitsDebate: true,
      answer: {},
      reported: [],
      logouts: [],
    },
    {
      name: 'ends nothing for a user who was never in the debate space',
      visitsDebate: false,
      answer: { logout: 'yes' },
      reported: [],
      logouts: [],
    },
  ])('$name', async ({ visitsDebate, answer, reported, logouts }) => {
    const browser = await start({ idpLogout: true });
    expect(await visit(browser, `${host.url}/login`)).toBe('alice');
    if (visitsDebate) await enterDebateSpace(browser);
    const page = await visit(browser, `${host.url}/logout`);
    expect(await confirm(browser, page, answer)).toBe('nobody');
    await app.close();
    expect(notified).toEqual(reported);
    expect(service.received.logouts).toEqual(logouts);
    expect(service.debate.isSignedIn('alice')).toBe(visitsDebate && logouts.length === 0);
  });

  it('ends nothing when it does not take its logouts to the identity provider', async () => {
    const browser = await start({ idpLogout: false });
    await visit(browser, `${host.url}/login`);
    await enterDebateSpace(browser);
    expect(await visit(browser, `${host.url}/logout`)).toBe('nobody');
    await app.close();
    expect(service.received.all).toEqual([]);
  });
});
