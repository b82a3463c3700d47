import { describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceService } from '../index.js';
import { DebateSpaceModule } from './debate-space.module.js';
import type { DebateSpaceModuleOptions, DebateSpaceOptionsFactory } from './module-options.js';

/** As express-session has it, with what the host has added: an interface, and no record of unknowns. */
interface SessionData {
  readonly cookie: object;
  readonly user?: { readonly id: string };
}

const required = {
  apiKey: 'api-key-of-a-test',
  secretKey: 'a secret key of a test, long enough for HS256',
  applicationName: 'demo',
  authUrl: 'https://debate.example.org',
};
const uid = (session: SessionData): string | undefined => session.user?.id;

@Injectable()
class OptionsFactory implements DebateSpaceOptionsFactory<SessionData> {
  createDebateSpaceOptions(): DebateSpaceModuleOptions<SessionData> {
    return { ...required, session: { uid: (session) => session.user?.id } };
  }
}

describe('session.uid', () => {
  it.each([
    ['forRoot', DebateSpaceModule.forRoot({ ...required, session: { uid } })],
    [
      'forRoot with an inline function',
      DebateSpaceModule.forRoot({
        ...required,
        session: { uid: (session: SessionData) => session.user?.id },
      }),
    ],
    [
      'forRoot with a function without a type',
      DebateSpaceModule.forRoot({
        ...required,
        session: { uid: (session) => String(session.userId) },
      }),
    ],
    [
      'forRootAsync',
      DebateSpaceModule.forRootAsync({ useFactory: () => ({ ...required, session: { uid } }) }),
    ],
    ['forRootAsync with a class', DebateSpaceModule.forRootAsync({ useClass: OptionsFactory })],
  ])('takes a session of the host: %s', async (_what, module) => {
    const app = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
    expect(app.get(DebateSpaceService)).toBeInstanceOf(DebateSpaceService);
    await app.close();
  });
});

describe('forRootAsync', () => {
  it('names a misspelled option and lists the known ones; only a return type tells TypeScript', async () => {
    const misspelled = { ...required, logout: { audiance: 'the service', concurrency: 2 } };
    const typed = (): DebateSpaceModuleOptions => ({
      ...required,
      // @ts-expect-error -- no such option
      logout: { audiance: 'the service', concurrency: 2 },
    });
    for (const useFactory of [() => misspelled, typed]) {
      const module = DebateSpaceModule.forRootAsync({ useFactory });
      const start = NestFactory.createApplicationContext(module, { logger: false, abortOnError: false });
      await expect(start).rejects.toThrow(
        'logout.audiance is no such option; there are mode, algorithm, issuer, audience',
      );
    }
  });
});
