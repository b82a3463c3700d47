import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger, type INestApplication } from '@nestjs/common';
import { DebateSpaceSimulator, DEMO_CREDENTIALS } from 'debate-space-simulator';
import { neverCloseIdle } from '#support/service/never-close-idle.js';
import { readdirSync } from 'node:fs';

const examples = {
  'minimal-express': () => import('../../docs/examples/minimal-express/main.js'),
  'minimal-fastify': () => import('../../docs/examples/minimal-fastify/main.js'),
};

let service: DebateSpaceSimulator;
let app: INestApplication | undefined;
beforeEach(async () => {
  Logger.overrideLogger(false);
  service = await DebateSpaceSimulator.start();
  Object.assign(process.env, {
    DEBATE_SPACE_API_KEY: DEMO_CREDENTIALS.apiKey,
    DEBATE_SPACE_SECRET_KEY: DEMO_CREDENTIALS.secretKey,
    DEBATE_SPACE_AUTH_URL: service.url,
    SESSION_SECRET: 'a session secret of at least 32 characters',
    PORT: '0',
  });
});
afterEach(async () => {
  await app?.close();
  await service.stop();
});

describe.each(Object.entries(examples))('docs/examples/%s', (_name, run) => {
  it('logs a user in, and logs the user out of the debate space', async () => {
    ({ app } = await run());
    neverCloseIdle(app);
    const url = await app.getUrl();
    service.debate.signIn('alice');
    const login = await fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ uid: 'alice' }),
    });
    const cookie = login.headers.getSetCookie().map((each) => each.split(';')[0] ?? '')[0] ?? '';
    const whoami = await fetch(`${url}/whoami`, { headers: { cookie } });
    expect(await whoami.text()).toBe('alice');

    await fetch(`${url}/logout`, { method: 'POST', headers: { cookie } });
    await service.received.waitFor('logout', { timeoutMs: 60_000 });
    expect(service.received.logouts).toEqual(['alice']);
    expect(service.debate.isSignedIn('alice')).toBe(false);
  });
});

it('each minimal app of docs/examples is run', () => {
  const found = readdirSync(new URL('../../docs/examples/', import.meta.url));
  expect(found.filter((name) => name.startsWith('minimal')).toSorted()).toEqual(Object.keys(examples));
});
