import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile, spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { keys } from 'debate-space-fixtures/service.js';
import { Browser } from '../../sample-app/src/demo/browser.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const PASSWORD = 'correct horse battery staple';

/** The arguments of Node.js for a program of the sample app, run from its source. */
const programOf = (name: string): string[] => [
  '--import',
  join(root, 'libs/debate-space-fixtures/src/typescript.mjs'),
  join(root, 'sample-app/src', `${name}.ts`),
];

/** A program, and the lines that it prints. */
class OwnProcess {
  readonly errors: Promise<string>;
  readonly printed: string[] = [];
  readonly #lines: AsyncIterator<string>;
  readonly #exit: Promise<unknown[]>;

  constructor(readonly child: ChildProcessByStdio<null, Readable, Readable>) {
    this.errors = text(child.stderr);
    this.#lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    this.#exit = once(child, 'exit');
  }

  /** The rest of the next line that begins with `label`. */
  async line(label: string): Promise<string> {
    for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next()) {
      this.printed.push(next.value);
      if (next.value.startsWith(label)) return next.value.slice(label.length).trim();
    }
    throw new Error(`The program has ended without "${label}":\n${await this.errors}`);
  }

  async exitCode(): Promise<unknown> {
    return (await this.#exit)[0];
  }

  async end(signal: NodeJS.Signals): Promise<unknown> {
    this.child.kill(signal);
    return this.exitCode();
  }
}

const running: OwnProcess[] = [];
let folder: string;
let service: DebateSpaceSimulator;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'own-process-'));
  const users = [{ uid: 'ada' }];
  service = await DebateSpaceSimulator.start({ ...keys, applicationName: 'sample-app', users });
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.end('SIGKILL');
  await service.stop();
  await rm(folder, { recursive: true });
});

function start(program: string, more: NodeJS.ProcessEnv): OwnProcess {
  const env = {
    PATH: process.env.PATH,
    PORT: '0',
    DEBATE_SPACE_STORAGE: `sqlite:${join(folder, 'debate-space.db')}`,
    ...more,
  };
  const started = new OwnProcess(
    spawn(process.execPath, programOf(program), { env, stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  running.push(started);
  return started;
}

describe('the sample app for a real service', () => {
  let hash: string;

  function hashing(password: string): Promise<{ stdout: string }> {
    const hashed = promisify(execFile)(process.execPath, programOf('hash-password'));
    hashed.child.stdin?.end(`${password}\n`);
    return hashed;
  }

  beforeAll(async () => {
    hash = (await hashing(PASSWORD)).stdout.trim();
  });

  const startMain = (more: NodeJS.ProcessEnv = {}): OwnProcess =>
    start('main', {
      DEBATE_SPACE_API_KEY: keys.apiKey,
      DEBATE_SPACE_SECRET_KEY: keys.secretKey,
      DEBATE_SPACE_APPLICATION_NAME: 'sample-app',
      DEBATE_SPACE_AUTH_URL: service.url,
      MEMBERS: `ada:${hash}`,
      ...more,
    });

  it.each(['SIGKILL', 'SIGTERM'] as const)(
    'delivers after a restart the logout that it had when %s ended it, while the service was away',
    async (signal) => {
      const app = startMain();
      const ada = new Browser(await app.line('The sample app:'));
      expect((await ada.logIn('ada', PASSWORD)).status).toBe(303);
      await service.goDown();
      expect((await ada.submit('/logout')).status).toBe(303);
      expect(await app.end(signal)).toBe(signal === 'SIGTERM' ? 0 : null);

      await service.comeBack();
      await startMain().line('The sample app:');
      await service.received.waitFor('logout', { timeoutMs: 60_000 });
      expect(service.received.logouts).toEqual(['ada']);
    },
  );

  it.each([
    { title: 'listens on 127.0.0.1 alone', more: {}, elsewhere: 'ECONNREFUSED' },
    { title: 'listens where HOST says', more: { HOST: '0.0.0.0' }, elsewhere: 200 },
  ])('$title', async ({ more, elsewhere }) => {
    const url = await startMain({ ALLOWED_HOSTS: '127.0.0.2', ...more }).line('The sample app:');
    const answerAt = (address: string): Promise<unknown> =>
      fetch(`http://${address}:${new URL(url).port}/login`).then(
        ({ status }) => status,
        (error: unknown) => (error as { cause: { code: string } }).cause.code,
      );
    expect([await answerAt('127.0.0.1'), await answerAt('127.0.0.2')]).toEqual([200, elsewhere]);
  });

  it.each([
    ['nobody could log in', { MEMBERS: '' }, /^Nobody can log in: set .*\nhint: .*hash-password.*\n$/],
    [
      'its storage is not usable',
      { DEBATE_SPACE_STORAGE: 'oracle://h' },
      /^DEBATE_SPACE_STORAGE .*\nhint: .*\n$/,
    ],
    ['its port is taken', { PORT: 'that of the service' }, /Port \d+ is taken\..*PORT=\d+\n$/],
  ])('ends with exit code 1 when %s, and prints only what to do', async (_, more, message) => {
    const refused = startMain('PORT' in more ? { PORT: new URL(service.url).port } : more);
    expect(await refused.exitCode()).toBe(1);
    expect(await refused.errors).toMatch(message);
  });

  it('hashes no password that is too short', async () => {
    const stderr: unknown = expect.stringContaining('at least 8 characters');
    await expect(hashing('short')).rejects.toMatchObject({ code: 1, stdout: '', stderr });
  });
});

describe('the sample app with a simulator beside it', () => {
  it('prints where both are and who can log in, and leaves the file for the command line only while it runs', async () => {
    const both = start('start', { SIMULATOR_PORT: '0' });
    const url = await both.line('The sample app:');
    expect((await fetch(new URL('/login', url))).status).toBe(200);
    const config = await both.line('Command line:').then((line) => /--config (\S+)/.exec(line)?.[1] ?? '');
    expect(await readFile(config, 'utf8')).toContain(`DEBATE_SPACE_STORAGE='sqlite:${folder}`);
    const printed = both.printed.join('\n');
    expect(printed).toContain('Log in as:         ada, ben');
    expect(printed).not.toMatch(/RouterExplorer|RoutesResolver|InstanceLoader|Mapped \{/);
    expect(await both.end('SIGINT')).toBe(0);
    await expect(readFile(config)).rejects.toThrow('ENOENT');
  });
});
