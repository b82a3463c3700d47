import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { configuredFor, run, start } from '../../libs/debate-space-cli/src/testing/command-line.js';
import {
  sqliteFile,
  storageKey,
  storageServers,
  type StorageServer,
} from '../../libs/debate-space-cli/src/testing/storages.js';
import { freePort } from 'debate-space-fixtures/free-port.js';
import { scenario } from 'debate-space-fixtures/scenario.js';

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

jest.setTimeout(120_000); // each process compiles what it runs

const scene = scenario({ rateLimit: false });
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-storage-'));
  scene.afterwards(() => rm(folder, { recursive: true }));
});

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

/** Leaves a logout to the app, and counts what waits there in a process, which has to close its connection to end. */
async function leavesALogout(engine: string, storage: NodeJS.ProcessEnv): Promise<void> {
  const env = configuredFor(scene.service, storage);
  expect(await run('logout alice --no-wait', { env })).toMatchObject({ code: 0 });
  const { out, code } = await runProcess('outbox stats --json', storage);
  expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ engine, pending: 1 })]);
  expect(await run('outbox drain', { env })).toMatchObject({ code: 0 });
  expect(scene.service.received.logouts).toEqual(['alice']);
}

describe('a storage in a file', () => {
  it('is that of the app', async () => {
    await leavesALogout('sqlite', await sqliteFile(join(folder, 'debate-space.db')));
  });

  it('is not created', async () => {
    const path = join(folder, 'debate-space.db');
    const env = configuredFor(scene.service, { DEBATE_SPACE_STORAGE: `sqlite:${path}` });
    const { code, err } = await run('logout alice --no-wait', { env });
    expect([code, err]).toEqual([3, expect.stringContaining(`there is no storage in ${path}`)]);
    expect(existsSync(path)).toBe(false);
    await writeFile(path, '');
    expect(await run('logout alice --no-wait', { env })).toMatchObject({ code: 3 });
  });
});

for (const { engine, describe: describeThese, start: startServer } of storageServers)
  describeThese(`a storage on a server of ${engine}`, () => {
    let server: StorageServer;
    beforeAll(async () => {
      server = await startServer();
    });
    afterAll(async () => {
      await server.stop();
    });

    it('is that of the app, in the tables of the printed migration', async () => {
      await leavesALogout(engine, server.env);
    });

    it('is not created', async () => {
      const elsewhere = { DEBATE_SPACE_STORAGE_SCHEMA: undefined, DEBATE_SPACE_STORAGE_PREFIX: 'other_' };
      const env = configuredFor(scene.service, { ...server.env, ...elsewhere });
      const { code, err } = await run('logout alice --no-wait', { env });
      expect([code, err]).toEqual([
        3,
        expect.stringMatching(/tables debate_space_… are not in .*storage migration/),
      ]);
      const query = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%space_jobs'";
      expect(await server.query(query)).toHaveLength(1);
    });

    // The last test of the server.
    it('ends the command with the code of the storage when it goes away', async () => {
      const env = configuredFor(scene.service, server.env);
      const watching = start('logout alice', { env });
      await watching.waitForStderr('this command only watches');
      await server.crash();
      expect(await watching.code).toBe(3);
      expect(watching.err()).toMatch(/(Postgres|MySQL) failed/);
    });
  });

describe('a command whose storage cannot be used', () => {
  it.each([
    ['pg', 'postgres://127.0.0.1/app'],
    ['mysql2', 'mysql://127.0.0.1/app'],
  ])('ends with 3 when the package %s is missing, and says how to install the package', async (name, url) => {
    const resolve = `export async function resolve(name, context, next) {
      if (name.split('/')[0] === '${name}') throw Object.assign(new Error('missing'), { code: 'ERR_MODULE_NOT_FOUND' });
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

  it.each(['postgres', 'mysql', 'mariadb'])(
    'ends with 3 when nobody listens at the address of %s, and shows no password',
    async (scheme) => {
      const url = `${scheme}://desk:hunter2@127.0.0.1:${await freePort()}/app`;
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
    'postgres://desk:%zz@127.0.0.1/x',
    'postgres://127.0.0.1:1/x?sslrootcert=/nowhere',
    'mysql://desk:%zz@127.0.0.1/x',
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
      DEBATE_SPACE_STORAGE: `postgres://127.0.0.1:${await freePort()}/app`,
    });
    const { code, err } = await run('users list', { env });
    expect(code).toBe(3);
    expect(err).toContain('DEBATE_SPACE_STORAGE_KEY is not set; hint: give the option storageKey');
    expect(err).not.toContain('ECONNREFUSED');
  });
});
