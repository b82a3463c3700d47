import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Logger, type INestApplication } from '@nestjs/common';
import { Browser } from 'debate-space-fixtures/browser.js';

const examples = {
  express: () => import('./express.js'),
  fastify: () => import('./fastify.js'),
};

let app: INestApplication | undefined;
beforeEach(() => {
  Logger.overrideLogger(false);
  Object.assign(process.env, { SESSION_SECRET: 'a session secret of at least 32 characters', PORT: '0' });
});
afterEach(() => app?.close());

it.each(Object.entries(examples))('examples/%s.ts writes each logout to its audit log', async (_, run) => {
  const example = await run();
  app = example.app;
  const browser = new Browser(await app.getUrl());
  const headers = { 'content-type': 'application/json' };
  await browser.fetch('/login', { method: 'POST', headers, body: JSON.stringify({ uid: 'alice' }) });
  expect(await browser.get('/whoami')).toBe('alice');
  expect(example.auditLog).toEqual([]);
  await browser.fetch('/logout', { method: 'POST' });
  expect(await browser.get('/whoami')).toBe('nobody');
  expect(example.auditLog).toEqual([
    { uid: 'alice', reason: 'destroyed', endedAt: expect.any(Date) as unknown },
  ]);
});
