import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { DebateSpaceModule } from './debate-space.module.js';

const PLATFORMS = ['AWS_LAMBDA_FUNCTION_NAME', 'VERCEL', 'K_SERVICE'];
/** As `postgresStorage()` looks from here, without a server. */
const shared: StorageEngine = { ...memoryStorage(), name: 'postgres', durable: true };

const environment = { ...process.env };
beforeEach(() => {
  for (const name of PLATFORMS) Reflect.deleteProperty(process.env, name);
});
afterEach(() => {
  process.env = { ...environment };
});

/** What the boot of a host warns of. */
async function warningsWith(options: { storage?: StorageEngine; worker?: boolean }): Promise<string[]> {
  const warnings: string[] = [];
  const logger: LoggerService = {
    log: () => undefined,
    error: (message: unknown) => warnings.push(String(message)),
    warn: (message: unknown) => warnings.push(String(message)),
  };
  const module = DebateSpaceModule.forRoot({
    apiKey: 'api-key-of-a-test',
    secretKey: 'a secret key of a test, long enough for HS256',
    storageKey: 'a storage key of a test',
    applicationName: 'demo',
    authUrl: 'https://debate.example.org',
    ...options,
  });
  const app = await NestFactory.createApplicationContext(module, { logger });
  await app.close();
  return warnings;
}

describe('on a serverless platform', () => {
  it.each(PLATFORMS)(
    'where %s is set, the default options are a warning with the right ones',
    async (name) => {
      process.env[name] = 'my-function';
      const [warning, ...others] = await warningsWith({});
      expect(others).toEqual([]);
      expect(warning).toContain(
        `${name} is set: a worker stands still after each answer, and the storages memory and sqlite are lost`,
      );
      expect(warning).toContain('hint: use postgresStorage() or mysqlStorage() with worker: false');
      expect(warning).not.toContain('my-function');
    },
  );

  it('a worker with a storage that processes share is a warning', async () => {
    process.env.VERCEL = '1';
    const [warning, ...others] = await warningsWith({ storage: shared });
    expect(others).toEqual([]);
    expect(warning).toContain('VERCEL is set: a worker stands still');
  });

  it('a storage that processes share, without a worker, is none', async () => {
    process.env.AWS_LAMBDA_FUNCTION_NAME = 'my-function';
    expect(await warningsWith({ storage: shared, worker: false })).toEqual([]);
  });
});

it.each(['memory', 'sqlite', 'postgres'])('elsewhere, the storage %s is no warning', async (name) => {
  process.env.K_SERVICE = ''; // as good as not set
  expect(await warningsWith({ storage: { ...memoryStorage(), name } })).toEqual([]);
});
