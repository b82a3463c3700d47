import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger, type INestApplication } from '@nestjs/common';
import { DebateSpaceSimulator, DEMO_CREDENTIALS } from 'debate-space-simulator';
import { neverCloseIdle } from '#support/service/never-close-idle.js';
import { readdirSync } from 'node:fs';
import { pageOf } from '#support/docs-snippets.js';

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

describe.each(Object.entries(examples))('docs/examples/%s', (name, run) => {
  it('has at most 40 lines', () => {
    const { length } = pageOf(`docs/examples/${name}/main.ts`).trimEnd().split('\n');
    expect(length).toBeLessThanOrEqual(40);
  });

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

it('each folder of docs/examples is run here, or has recipes', () => {
  const folders = readdirSync(new URL('../../docs/examples/', import.meta.url));
  expect(folders.toSorted()).toEqual([...Object.keys(examples), 'recipes']);
});
