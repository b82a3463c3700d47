import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Browser } from '../../sample-app/src/demo/browser.js';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { freePort } from 'debate-space-fixtures/free-port.js';
import { keys } from 'debate-space-fixtures/service.js';
import { sharedStorages, type StorageServer } from '../../libs/debate-space-cli/src/testing/storages.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dist = join(root, 'sample-app/dist');
const run = promisify(execFile);
const ADDRESS = /^The sample app: +(http:\/\/\S+)\/$/;

/** A program in a process group of its own, and what it has printed. */
class OwnProcess {
  readonly printed: string[] = [];
  readonly errors: Promise<string>;
  readonly #lines: AsyncIterator<string>;
  readonly #exit: Promise<unknown[]>;

  constructor(readonly child: ChildProcessByStdio<null, Readable, Readable>) {
    this.errors = text(child.stderr);
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    this.#exit = once(child, 'exit');
  }

  /** The first line from now on that matches. */
  async line(pattern: RegExp): Promise<string> {
    for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next()) {
      this.printed.push(next.value);
      if (pattern.test(next.value)) return next.value;
    }
    const all = [...this.printed, await this.errors].join('\n');
    throw new Error(`The program has ended without ${String(pattern)}:\n${all}`);
  }

  /** Where the app listens. The app prints it when its port is open, and not before. */
  async address(): Promise<string> {
    return (await this.line(ADDRESS)).replace(ADDRESS, '$1');
  }

  /** What it prints from now on until it ends. */
  async rest(): Promise<string> {
    const lines: string[] = [];
    for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next())
      lines.push(next.value);
    return [...lines, await this.errors].join('\n');
  }

  async exitCode(): Promise<unknown> {
    const [code] = await this.#exit;
    return code;
  }

  /** Signals the program and its children, as Ctrl+C in a shell does. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const { pid, exitCode, signalCode } = this.child;
    if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, signal);
    await this.#exit;
  }
}

let folder: string;
let app: OwnProcess | undefined;

function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv): OwnProcess {
  return (app = new OwnProcess(
    spawn(command, args, { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] }),
  ));
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'own-process-'));
});
afterEach(async () => {
  await app?.end('SIGKILL');
  app = undefined;
  await rm(folder, { recursive: true });
});

let startup: { readonly whenBuilding: boolean; readonly printed: string };

// Builds what the programs of this file are: they use the packages by name.
beforeAll(async () => {
  await rm(join(dist, 'start.js'), { force: true });
  const storage = await mkdtemp(join(tmpdir(), 'own-process-'));
  const env = { ...process.env, PORT: '0', SIMULATOR_PORT: '0', DEBATE_SPACE_STORAGE: `lmdb:${storage}` };
  const npm = start('npm', ['start'], env);
  await npm.line(/^Building/);
  const whenBuilding = existsSync(join(dist, 'start.js'));
  const url = await npm.address();
  expect((await fetch(`${url}/login`)).status).toBe(200);
  await npm.line(/^Stop with Ctrl\+C\.$/);
  await npm.end('SIGINT');
  startup = { whenBuilding, printed: npm.printed.join('\n') };
  await rm(storage, { recursive: true });
}, 300_000);

describe('npm start', () => {
  it('says that it builds before anything is built, and then what it starts', () => {
    expect(startup.whenBuilding).toBe(false);
    const simulator = startup.printed.indexOf('Starting the simulator of the debate space');
    const sampleApp = startup.printed.indexOf('Starting the sample app');
    expect(simulator).toBeGreaterThan(startup.printed.indexOf('Building'));
    expect(sampleApp).toBeGreaterThan(simulator);
    expect(startup.printed.indexOf('Log in as:')).toBeGreaterThan(sampleApp);
  });

  it('lists no modules and no routes', () => {
    expect(startup.printed).toContain('Starting Nest application');
    expect(startup.printed).not.toMatch(/RouterExplorer|RoutesResolver|InstanceLoader|Mapped \{/);
  });
});

describe('the sample app for a real service', () => {
  const PASSWORD = 'correct horse battery staple';
  let service: DebateSpaceSimulator;
  let hash: string;

  function hashing(password: string): Promise<{ stdout: string }> {
    const hashed = run(process.execPath, [join(dist, 'hash-password.js')]);
    hashed.child.stdin?.end(`${password}\n`);
    return hashed;
  }

  beforeAll(async () => {
    hash = (await hashing(PASSWORD)).stdout.trim();
  });
  beforeEach(async () => {
    const users = [{ uid: 'ada' }];
    service = await DebateSpaceSimulator.start({ ...keys, applicationName: 'sample-app', users });
  });
  afterEach(async () => {
    await app?.end('SIGKILL');
    await service.stop();
  });

  function startMain(more: NodeJS.ProcessEnv = {}): OwnProcess {
    return start(process.execPath, [join(dist, 'main.js')], {
      PATH: process.env.PATH,
      DEBATE_SPACE_API_KEY: keys.apiKey,
      DEBATE_SPACE_SECRET_KEY: keys.secretKey,
      DEBATE_SPACE_APPLICATION_NAME: 'sample-app',
      DEBATE_SPACE_AUTH_URL: service.url,
      DEBATE_SPACE_STORAGE: `lmdb:${folder}`,
      PORT: '0',
      MEMBERS: `ada:${hash}`,
      ...more,
    });
  }

  it('delivers after a restart what it was killed with, while the service was away', async () => {
    const ada = new Browser(await startMain().address());
    expect((await ada.logIn('ada', PASSWORD)).status).toBe(303);
    await service.goDown();
    const response = await ada.submit('/logout');
    expect(response.status).toBe(303);
    await app?.end('SIGKILL');

    await service.comeBack();
    await startMain().address();
    await service.received.waitFor('logout', { timeoutMs: 60_000 });
    expect(service.received.logouts).toEqual(['ada']);
  });

  for (const storage of sharedStorages) {
    storage.describe(`with the storage ${storage.name}`, () => {
      let server: StorageServer;
      beforeAll(async () => {
        server = await storage.start();
      });
      afterAll(async () => {
        await server.stop();
      });

      it('closes its connection last, and delivers after the restart what it could not deliver before', async () => {
        const env = await server.place();
        const ada = new Browser(await startMain(env).address());
        await ada.logIn('ada', PASSWORD);
        await service.goDown();
        expect((await ada.submit('/logout')).status).toBe(303);
        const ended = app?.exitCode();
        app?.child.kill('SIGTERM');
        expect(await ended).toBe(0);
        expect(await app?.rest()).not.toMatch(/storage|Redis|Postgres/i);

        await service.comeBack();
        await startMain(env).address();
        await service.received.waitFor('logout', { timeoutMs: 60_000 });
        expect(service.received.logouts).toEqual(['ada']);
      });
    });
  }

  it.each(['redis', 'postgres'])(
    'ends with exit code 1 when its storage in %s cannot be reached, and shows no password',
    async (scheme) => {
      const url = `${scheme}://desk:hunter2@127.0.0.1:${await freePort()}/0`;
      const refused = startMain({ DEBATE_SPACE_STORAGE: url });
      expect(await refused.exitCode()).toBe(1);
      expect(await refused.errors).toMatch(/^The storage cannot be reached \(ECONNREFUSED\)\.\nhint: .*\n$/);
    },
  );

  it.each([
    { title: 'listens on 127.0.0.1 alone', more: {}, elsewhere: 'ECONNREFUSED' },
    { title: 'listens where HOST says', more: { HOST: '0.0.0.0' }, elsewhere: 200 },
  ])('$title', async ({ more, elsewhere }) => {
    const url = await startMain({ ALLOWED_HOSTS: '127.0.0.2', ...more }).address();
    const { port } = new URL(url.replace('[::1]', '127.0.0.1'));
    const answerAt = (address: string): Promise<unknown> =>
      fetch(`http://${address}:${port}/login`).then(
        ({ status }) => status,
        (error: unknown) => (error as { cause: { code: string } }).cause.code,
      );
    expect([await answerAt('127.0.0.1'), await answerAt('127.0.0.2')]).toEqual([200, elsewhere]);
  });

  it('ends with exit code 1 when nobody could log in, and prints only which variables to set, and how', async () => {
    const refused = startMain({ MEMBERS: '' });
    expect(await refused.exitCode()).toBe(1);
    expect(await refused.errors).toMatch(
      /^Nobody can log in: set ADMINISTRATORS, MEMBERS or both\..*\nhint: .*hash-password.*\n$/,
    );
  });

  it('ends with exit code 1 when its port is taken, and says so', async () => {
    const refused = startMain({ PORT: new URL(service.url).port });
    expect(await refused.exitCode()).toBe(1);
    expect(await refused.errors).toMatch(/Port \d+ is taken\..*PORT=\d+\n$/);
  });

  it('hashes no password that is too short', async () => {
    const stderr: unknown = expect.stringContaining('at least 8 characters');
    await expect(hashing('short')).rejects.toMatchObject({ code: 1, stdout: '', stderr });
  });
});
