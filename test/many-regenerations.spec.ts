import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fastifySession from '@fastify/session';
import { Module } from '@nestjs/common';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import type { Request } from 'express';
import session from 'express-session';
import type { FastifyRequest } from 'fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import * as fastifyAccount from 'debate-space-fixtures/fastify-account.js';
import { warningsDuring } from 'debate-space-fixtures/process-warnings.js';
import { startService, using } from 'debate-space-fixtures/service.js';
import { SessionHost } from 'debate-space-fixtures/session-host.js';

/** One more than Node's limit of listeners. */
const TIMES = 11;

let service: DebateSpaceSimulator;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

async function renewOnExpress(request: Request): Promise<void> {
  for (let time = 0; time < TIMES; time += 1) {
    await new Promise((resolve) => request.session.regenerate(resolve));
    request.session.user = { uid: 'alice' };
    await new Promise((resolve) => request.session.save(resolve));
  }
}

async function renewOnFastify(request: FastifyRequest): Promise<void> {
  for (let time = 0; time < TIMES; time += 1) {
    await request.session.regenerate();
    Object.assign(request.session, { user: { uid: 'alice' } });
    await request.session.save();
  }
}

interface Platform {
  readonly name: string;
  /** Starts a host, watched or not. */
  readonly start: (watched: boolean) => Promise<{ readonly url: string; readonly stop: () => Promise<void> }>;
}

@Module({})
class Unwatched {}

const platforms: Platform[] = [
  {
    name: 'Express',
    start: async (watched) => {
      const debateSpace = watched ? [using(service)] : [];
      const host = await SessionHost.start({
        debateSpace,
        store: new session.MemoryStore(),
        act: renewOnExpress,
      });
      return { url: host.url, stop: () => host.stop() };
    },
  },
  {
    name: 'Fastify',
    start: async (watched) => {
      const ours = watched ? DebateSpaceModule.forRoot(using(service)) : { module: Unwatched };
      const app = await fastifyAccount.appOf(ours, async (instance) => {
        await fastifyAccount.sessionsIn(new fastifySession.MemoryStore())(instance);
        instance.post('/act', async (request) => {
          await renewOnFastify(request);
          return 'session' in request;
        });
      });
      await app.listen(0, '127.0.0.1');
      return { url: await app.getUrl(), stop: () => app.close() };
    },
  },
];

describe.each(platforms)('on $name', ({ start }) => {
  const actOnce = async (watched: boolean): Promise<unknown> => {
    const { url, stop } = await start(watched);
    try {
      let body = '';
      const warnings = await warningsDuring(async () => {
        body = await fastifyAccount.post(new Browser(url), '/act');
      });
      return { warnings, body };
    } finally {
      await stop();
    }
  };

  it('eleven regenerations in one request raise no warning, and the request keeps its session', async () => {
    const plain = await actOnce(false);
    expect(plain).toMatchObject({ warnings: [] });
    expect(await actOnce(true)).toEqual(plain);
  });
});
