// A host with better-auth: what its users do, and which logouts the service hears of.
import 'reflect-metadata';
import { deepStrictEqual } from 'node:assert';
import { Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { toNodeHandler } from 'better-auth/node';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { AUTH, authProvider, type Auth } from './auth.js';
import { database } from './auth-options.js';

const keys = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};
const email = 'alice@example.org';
const password = 'a password of alice';
const renewal = { currentPassword: password, newPassword: 'another password' };

const twice = async (browser: Browser): Promise<void> => {
  await browser.post('sign-out');
  await browser.post('sign-out');
};
const expire = (browser: Browser): Promise<void> => {
  for (const session of database.session) session.expiresAt = new Date(0);
  return browser.get('get-session');
};

interface Situation {
  /** What alice does in one of the two browsers in which she is signed in. */
  readonly what: string;
  readonly act: (browser: Browser) => Promise<void> | undefined;
  /** How many are reported. */
  readonly logouts: number;
}

const situations: readonly Situation[] = [
  { what: 'nothing but a second sign-in', act: () => undefined, logouts: 0 },
  { what: 'a sign-out, while another session is left', act: (one) => one.post('sign-out'), logouts: 1 },
  { what: 'a sign-out that is repeated', act: twice, logouts: 1 },
  { what: 'both sessions revoked', act: (one) => one.post('revoke-sessions'), logouts: 2 },
  { what: 'the other session revoked', act: (one) => one.post('revoke-other-sessions'), logouts: 1 },
  { what: 'a new password', act: (one) => one.post('change-password', renewal), logouts: 0 },
  {
    what: 'a new password, sessions revoked',
    act: (one) => one.post('change-password', { ...renewal, revokeOtherSessions: true }),
    logouts: 2,
  },
  { what: 'a deleted user', act: (one) => one.post('delete-user', { password }), logouts: 2 },
  { what: 'two expired sessions, of which one comes back', act: expire, logouts: 1 },
];

/** A browser of alice. */
class Browser {
  readonly #url: string;
  #cookie = '';

  constructor(url: string) {
    this.#url = url;
  }

  get(path: string): Promise<void> {
    return this.#ask(path, {});
  }

  post(path: string, body = {}): Promise<void> {
    return this.#ask(path, { method: 'POST', body: JSON.stringify(body) });
  }

  async #ask(path: string, init: RequestInit): Promise<void> {
    const headers = { 'content-type': 'application/json', origin: this.#url, cookie: this.#cookie };
    const response = await fetch(`${this.#url}/api/auth/${path}`, { headers, ...init });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    const cookies = response.headers.getSetCookie().map((cookie) => cookie.split(';')[0]);
    if (cookies.length > 0) this.#cookie = cookies.join('; ');
    await response.text();
  }
}

for (const { what, act, logouts } of situations) {
  for (const rows of Object.values(database)) rows.length = 0;
  const service = await DebateSpaceSimulator.start(keys);
  const app = await startHost(service.url);
  const url = await app.getUrl();
  const [one, other] = [new Browser(url), new Browser(url)];
  await one.post('sign-up/email', { name: 'Alice', email, password });
  await other.post('sign-in/email', { email, password });
  const [alice] = database.user;
  await act(one);
  await app.close(); // delivers what is pending
  await service.stop();
  deepStrictEqual(service.received.logouts, Array(logouts).fill(alice?.id), what);
  console.log(`  ${what}: ${logouts} logout${logouts === 1 ? '' : 's'}`);
}

async function startHost(authUrl: string): Promise<INestApplication> {
  const debateSpace = DebateSpaceModule.forRoot({ ...keys, authUrl });

  @Module({ imports: [debateSpace], providers: [authProvider] })
  class HostModule {}

  const app = await NestFactory.create(HostModule, { logger: ['error', 'warn'] });
  app.use('/api/auth', toNodeHandler(app.get<Auth>(AUTH)));
  await app.listen(0, '127.0.0.1');
  return app;
}
