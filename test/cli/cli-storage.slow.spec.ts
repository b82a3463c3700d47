import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createPool } from 'mysql2/promise';
import { Scene } from '../../libs/debate-space-cli/src/testing/command-line.js';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresPool, postgresServer, startPostgres } from '#support/servers/postgres.js';

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

jest.setTimeout(120_000); // each process compiles what it runs

const scene = new Scene();
const key = { DEBATE_SPACE_STORAGE_KEY: 'a-storage-key-of-a-test' };

/** A server with the tables that `debate-space storage migration` prints. */
interface StorageServer {
  /** The variables that name the storage. */
  readonly env: NodeJS.ProcessEnv;
  tables(): Promise<unknown>;
  crash(): Promise<void>;
  stop(): Promise<void>;
}
const TABLES = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%space_jobs'";
const migration = async (options: string): Promise<string> =>
  (await scene.run(`storage migration --dialect ${options}`)).out;

async function inPostgres(): Promise<StorageServer> {
  const server = await startPostgres();
  const pool = postgresPool(server);
  await pool.query(`CREATE SCHEMA debate; ${await migration('postgres --schema debate')}`);
  const env = {
    ...key,
    DEBATE_SPACE_STORAGE: server.connectionString,
    DEBATE_SPACE_STORAGE_SCHEMA: 'debate',
  };
  const stop = () => pool.end().then(() => server.stop());
  return {
    env,
    tables: async () => (await pool.query<object>(TABLES)).rows,
    crash: () => server.crash(),
    stop,
  };
}

async function inMariadb(): Promise<StorageServer> {
  const server = await startMariadb();
  const pool = createPool({ uri: server.uri, multipleStatements: true });
  await pool.query(await migration('mysql --prefix app_'));
  const url = server.uri.replace('mysql:', 'mariadb:');
  const env = { ...key, DEBATE_SPACE_STORAGE: url, DEBATE_SPACE_STORAGE_PREFIX: 'app_' };
  const stop = () => pool.end().then(() => server.stop());
  return { env, tables: async () => (await pool.query(TABLES))[0], crash: () => server.crash(), stop };
}

/** Those of this machine; the tests of one that is missing are skipped. */
const servers = [
  { engine: 'postgres', describe: postgresServer.describe, start: inPostgres },
  { engine: 'mysql', describe: mariadbServer.describe, start: inMariadb },
] as const;

/** The command line as a process. @param more options of Node */
async function runProcess(args: string, env: NodeJS.ProcessEnv, ...more: string[]) {
  const loader = fileOf('../../test/support/process/typescript.mjs');
  const program = [...more, '--import', loader, fileOf('../../libs/debate-space-cli/src/cli.ts')];
  const whole = { PATH: process.env.PATH, ...scene.env, ...env };
  const child = spawn(process.execPath, [...program, ...args.split(' ')], { cwd: '/', env: whole });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { out, err, code: child.exitCode };
}

/** Leaves a logout to the app, and counts what waits there in a process, which has to close its connection to end. */
async function leavesALogout(engine: string, storage: NodeJS.ProcessEnv = {}): Promise<void> {
  const env = { ...scene.env, ...storage };
  expect(await scene.run('logout ada --no-wait', { env })).toMatchObject({ code: 0 });
  const { out, code } = await runProcess('outbox stats --json', storage);
  expect([code, JSON.parse(out)]).toEqual([0, expect.objectContaining({ engine, pending: 1 })]);
  expect(await scene.run('outbox drain', { env })).toMatchObject({ code: 0 });
  expect(scene.service.received.logouts).toEqual(['ada']);
}

describe('a storage in a file', () => {
  it('is that of the app', async () => {
    await scene.useSqlite();
    await leavesALogout('sqlite');
  });

  it('is not created', async () => {
    const path = join(scene.folder, 'debate-space.db');
    const env = { ...scene.env, DEBATE_SPACE_STORAGE: `sqlite:${path}` };
    const err = expect.stringContaining(`no storage is found in ${path}`);
    expect(await scene.run('logout ada --no-wait', { env })).toMatchObject({ code: 3, err });
    expect(existsSync(path)).toBe(false);
    await scene.write('debate-space.db', '');
    expect(await scene.run('logout ada --no-wait', { env })).toMatchObject({ code: 3 });
  });
});

for (const { engine, describe: describeThese, start: startServer } of servers)
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

    it('is examined by doctor, which warns of a server that may lose commits, as that of the tests', async () => {
      const { code, out } = await scene.run('doctor', { env: { ...scene.env, ...server.env } });
      expect([code, out]).toEqual([6, expect.stringContaining(`✓ storage    ${engine} opens`)]);
      expect(out).toMatch(/^✗ storage .*may lose its last commits.*\n +→ set \w+ = /m);
    });

    if (engine === 'postgres')
      it('is refused by doctor when it can be read, and not written', async () => {
        const url = new URL(server.env.DEBATE_SPACE_STORAGE ?? '');
        url.searchParams.set('options', '-c default_transaction_read_only=on');
        const env = { ...scene.env, ...server.env, DEBATE_SPACE_STORAGE: url.href };
        const { code, out } = await scene.run('doctor', { env });
        expect([code, out]).toEqual([6, expect.stringMatching(/^✗ storage .*read-only/m)]);
        expect(out).not.toContain('✓ storage');
      });

    it('is not created', async () => {
      const elsewhere = { DEBATE_SPACE_STORAGE_SCHEMA: undefined, DEBATE_SPACE_STORAGE_PREFIX: 'other_' };
      const env = { ...scene.env, ...server.env, ...elsewhere };
      const err = expect.stringMatching(
        /tables of the storage are missing.*storage migration.*DEBATE_SPACE_STORAGE/,
      );
      expect(await scene.run('logout ada --no-wait', { env })).toMatchObject({ code: 3, err });
      expect(await server.tables()).toHaveLength(1);
    });

    // The last test of the server.
    it('ends the command with the code of the storage when it goes away', async () => {
      const watching = scene.start('logout ada', { env: { ...scene.env, ...server.env } });
      await watching.waitForStderr('this command only watches');
      await server.crash();
      expect(await watching.code).toBe(3);
      expect(watching.err()).toMatch(/(Postgres|MySQL) failed/);
    });
  });

describe('a command whose storage cannot be used', () => {
  it.each(['pg', 'mysql2'])('ends with 3 when the package %s is missing, and says so', async (name) => {
    const resolve = `export async function resolve(name, context, next) {
      if (name.split('/')[0] === '${name}') throw Object.assign(new Error('missing'), { code: 'ERR_MODULE_NOT_FOUND' });
      return next(name, context);
    }`;
    const hooks = `data:text/javascript,${encodeURIComponent(resolve)}`;
    const registering = `import { register } from 'node:module'; register(${JSON.stringify(hooks)});`;
    const withoutPackage = `--import=data:text/javascript,${encodeURIComponent(registering)}`;
    const url = name === 'pg' ? 'postgres://127.0.0.1/app' : 'mysql://127.0.0.1/app';
    const env = { ...key, DEBATE_SPACE_STORAGE: url };
    const err = `DEBATE_SPACE_STORAGE needs the package ${name}, which is missing or does not load; npm install ${name}\n`;
    expect(await runProcess('outbox stats', env, withoutPackage)).toEqual({ code: 3, out: '', err });
  });

  it.each([
    ['nobody listens', 'postgres://desk:hunter2@127.0.0.1:1/app', 'failed (ECONNREFUSED); '],
    ['nobody listens', 'mysql://desk:hunter2@127.0.0.1:1/app', 'failed (ECONNREFUSED); '],
    ['nobody listens', 'mariadb://desk:hunter2@127.0.0.1:1/app', 'failed (ECONNREFUSED); '],
    ['its client refuses it', 'postgres://desk:%zz@127.0.0.1:1/hunter2', 'DEBATE_SPACE_STORAGE'],
    ['its client refuses it', 'postgres://127.0.0.1:1/hunter2?sslrootcert=/nowhere', 'DEBATE_SPACE_STORAGE'],
    ['its client refuses it', 'mysql://desk:%zz@127.0.0.1:1/hunter2', 'DEBATE_SPACE_STORAGE is refused'],
  ])('ends with 3 when %s, and shows nothing of the address: %s', async (_what, url, said) => {
    const env = { ...scene.env, ...key, DEBATE_SPACE_STORAGE: url };
    const { code, out, err } = await scene.run('outbox stats --json', { env });
    expect([code, err]).toEqual([3, expect.stringContaining(said)]);
    expect(JSON.parse(out)).toMatchObject({
      error: { code: expect.stringMatching(/STORAGE|CONFIGURATION/) },
    });
    expect(out + err).not.toMatch(/hunter2|127\.0\.0\.1/);
  });
});
