import { describe, expect, it } from '@jest/globals';
import fastifySession from '@fastify/session';
import { Module } from '@nestjs/common';
import type { Request } from 'express';
import type { FastifyRequest } from 'fastify';
import { DebateSpaceModule } from 'nestjs-debate-space';
import { Browser } from 'debate-space-fixtures/browser.js';
import * as fastifyAccount from 'debate-space-fixtures/fastify-account.js';
import { warningsDuring } from 'debate-space-fixtures/process-warnings.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { using } from 'debate-space-fixtures/service.js';

/** One more than Node's limit of listeners. */
const TIMES = 11;

const scene = scenario();

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
  /** Starts a host, watched or not. @returns where it listens */
  readonly start: (watched: boolean) => Promise<string>;
}

@Module({})
class Unwatched {}

const platforms: Platform[] = [
  {
    name: 'Express',
    start: async (watched) => {
      const act = renewOnExpress;
      return (await scene.start(watched ? { act } : { act, debateSpace: [] })).url;
    },
  },
  {
    name: 'Fastify',
    start: (watched) => {
      const ours = watched ? DebateSpaceModule.forRoot(using(scene.service)) : { module: Unwatched };
      const app = fastifyAccount.appOf(ours, async (instance) => {
        await fastifyAccount.sessionsIn(new fastifySession.MemoryStore())(instance);
        instance.post('/act', async (request) => {
          await renewOnFastify(request);
          return 'session' in request;
        });
      });
      return scene.apps.listen(app);
    },
  },
];

describe.each(platforms)('on $name', ({ start }) => {
  const actOnce = async (watched: boolean): Promise<unknown> => {
    const url = await start(watched);
    let body = '';
    const warnings = await warningsDuring(async () => {
      body = await fastifyAccount.post(new Browser(url), '/act');
    });
    await scene.stop();
    return { warnings, body };
  };

  it('eleven regenerations in one request raise no warning, and the request keeps its session', async () => {
    const plain = await actOnce(false);
    expect(plain).toMatchObject({ warnings: [] });
    expect(await actOnce(true)).toEqual(plain);
  });
});
