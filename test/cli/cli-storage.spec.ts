import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { configuredFor, run } from '../../libs/debate-space-cli/src/testing/command-line.js';
import { sharedStorages, type StorageServer } from '../../libs/debate-space-cli/src/testing/storages.js';
import { freePort } from 'debate-space-fixtures/free-port.js';
import { redisServer, startRedis } from 'debate-space-fixtures/redis.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const storageKey = { DEBATE_SPACE_STORAGE_KEY: 'a-storage-key-of-a-test' };

jest.setTimeout(120_000); // each process compiles what it runs

const scene = scenario({ rateLimit: false });

/** The command line as a process. @param more options of Node */
async function runProcess(args: string, env: NodeJS.ProcessEnv, ...more: string[]) {
  const program = [
    ...more,
    '--import',
    fileOf('../../libs/debate-space-fixtures/src/typescript.mjs'),
    fileOf('../../libs/debate-space-cli/src/cli.ts'),
  ];
  const child = spawn(process.execPath, [...program, ...args.split(' ')], {
    cwd: '/',
    env: { PATH: process.env.PATH, ...configuredFor(scene.service, env) },
  });
  const closed = once(child, 'close');
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await closed;
  return { out, err, code: child.exitCode };
}

for (const storage of sharedStorages) {
  storage.describe(`the command line as a process, with the storage ${storage.name}`, () => {
    let server: StorageServer;
    let env: NodeJS.ProcessEnv;
    beforeAll(async () => {
      server = await storage.start();
      env = await server.place();
    });
    afterAll(async () => {
      await server.stop();
    });

    it('closes its connection and ends', async () => {
      expect(await runProcess('logout alice --no-wait', env)).toMatchObject({ code: 0 });
      const { out, code } = await runProcess('outbox stats --json', env);
      expect([code, JSON.parse(out)]).toEqual([
        0,
        expect.objectContaining({ engine: storage.name, pending: 1 }),
      ]);
    });
  });
}

describe('a command whose storage cannot be used', () => {
  it.each([
    ['redis', 'redis://127.0.0.1'],
    ['pg', 'postgres://127.0.0.1/app'],
  ])('ends with 3 when the package %s is missing, and says how to install the package', async (name, url) => {
    const resolve = `export async function resolve(name, context, next) {
      if (name === '${name}') throw Object.assign(new Error('missing'), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(name, context);
    }`;
    const hooks = `data:text/javascript,${encodeURIComponent(resolve)}`;
    const registering = `import { register } from 'node:module'; register(${JSON.stringify(hooks)});`;
    const withoutPackage = `--import=data:text/javascript,${encodeURIComponent(registering)}`;
    const { err, code } = await runProcess(
      'outbox stats',
      { ...storageKey, DEBATE_SPACE_STORAGE: url },
      withoutPackage,
    );
    expect(err).toBe(
      `DEBATE_SPACE_STORAGE needs the package ${name}, which is missing or does not load; npm install ${name}\n`,
    );
    expect(code).toBe(3);
  });

  it.each(['redis', 'postgres'])(
    'ends with 3 when nobody listens at the address of %s, and shows no password',
    async (scheme) => {
      const url = `${scheme}://desk:hunter2@127.0.0.1:${await freePort()}/0`;
      const { code, out, err } = await run('outbox stats --json', {
        env: configuredFor(scene.service, { ...storageKey, DEBATE_SPACE_STORAGE: url }),
      });
      expect(code).toBe(3);
      expect(JSON.parse(out)).toMatchObject({ error: { code: 'ERR_DEBATE_SPACE_CLI_CONFIGURATION' } });
      expect(err).toContain('cannot be reached (ECONNREFUSED)');
      expect(out + err).not.toContain('hunter2');
    },
  );

  it.each([
    'redis://127.0.0.1/x?',
    'redis://desk:%zz@127.0.0.1',
    'postgres://desk:%zz@127.0.0.1/x',
    'postgres://127.0.0.1:1/x?sslrootcert=/nowhere',
  ])('ends with 3 when its client refuses the address, and does not show the address: %s', async (url) => {
    const { code, out, err } = await run('outbox stats', {
      env: configuredFor(scene.service, { ...storageKey, DEBATE_SPACE_STORAGE: url }),
    });
    expect(code).toBe(3);
    expect(err).toContain('cannot be reached');
    expect(out + err).not.toContain('127.0.0.1');
  });

  it('ends with 3 when the storage key is missing, before anything connects', async () => {
    const env = configuredFor(scene.service, {
      DEBATE_SPACE_STORAGE: `redis://127.0.0.1:${await freePort()}`,
    });
    const { code, err } = await run('users list', { env });
    expect(code).toBe(3);
    expect(err).toContain('DEBATE_SPACE_STORAGE_KEY is not set; hint: give the option storageKey');
    expect(err).not.toContain('ECONNREFUSED');
  });
});

redisServer.describe('a Redis that goes away during a command', () => {
  it('ends the command with the code of the storage', async () => {
    const redis = await startRedis({ appendonly: 'yes', 'maxmemory-policy': 'noeviction' });
    try {
      const env = configuredFor(scene.service, { ...storageKey, DEBATE_SPACE_STORAGE: redis.url });
      expect(await run('logout alice --no-wait', { env })).toMatchObject({ code: 0 });
      const watching = runProcess('logout alice', { ...storageKey, DEBATE_SPACE_STORAGE: redis.url });
      const waiting = async () =>
        JSON.parse((await run('outbox stats --json', { env })).out) as { pending: number };
      while ((await waiting()).pending < 2) await delay(100);
      await redis.crash();
      const { code, err } = await watching;
      expect(code).toBe(3);
      expect(err).toContain('Redis failed');
    } finally {
      await redis.stop();
    }
  });
});
