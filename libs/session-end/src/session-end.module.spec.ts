import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { SessionEndModule } from './session-end.module.js';
import { SessionEndWatcher } from './watch-session-ends.js';
import type { SessionEnd, SessionEndListener, SessionEndOptions } from './session-end.js';

let app: INestApplication | undefined;
afterEach(async () => {
  await app?.close();
  jest.restoreAllMocks();
});

async function watcherOf(options: SessionEndOptions): Promise<SessionEndWatcher> {
  const testing = await Test.createTestingModule({ imports: [SessionEndModule.forRoot(options)] }).compile();
  app = testing.createNestApplication({ logger: ['error'] });
  await app.init();
  return app.get(SessionEndWatcher);
}

describe('SessionEndModule', () => {
  it('takes an instance of a class as its listener, and leaves the instance as it is', async () => {
    class AuditLog implements SessionEndListener {
      readonly #entries: string[] = [];

      onSessionEnd({ uid, reason }: SessionEnd): void {
        this.#entries.push(`${uid}: ${reason}`);
      }

      get entries(): readonly string[] {
        return this.#entries;
      }
    }
    const audit = Object.freeze(new AuditLog());
    await (await watcherOf(audit)).report('alice', 'explicit');
    expect(audit.entries).toEqual(['alice: explicit']);
  });

  it('logs the class of an error that the listener throws, not its message', async () => {
    const logged = jest.spyOn(Logger.prototype, 'error').mockReturnValue(undefined);
    const options: SessionEndOptions = {
      onSessionEnd: () => {
        throw new RangeError('a secret');
      },
      onFault: undefined,
    };
    await (await watcherOf(options)).report('alice', 'explicit');
    expect(logged.mock.calls).toEqual([['onSessionEnd failed: RangeError']]);
  });

  it('tells onFault of the error itself', async () => {
    const faults: unknown[] = [];
    const error = new RangeError('a secret');
    const options: SessionEndOptions = {
      onSessionEnd: () => Promise.reject(error),
      onFault: (...fault) => faults.push(fault),
    };
    await (await watcherOf(options)).report('alice', 'explicit');
    expect(faults).toEqual([['onSessionEnd', error]]);
  });
});
