import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configuredFor } from '../../libs/debate-space-cli/src/testing/command-line.js';
import { sqliteFile } from '../../libs/debate-space-cli/src/testing/storages.js';
import { programOf } from 'debate-space-fixtures/program.js';
import { scenario } from 'debate-space-fixtures/scenario.js';
import { selfSigned } from 'debate-space-fixtures/self-signed.js';

const fileOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const program = [
  '--import',
  fileOf('../../libs/debate-space-fixtures/src/typescript.mjs'),
  fileOf('../../libs/debate-space-cli/src/cli.ts'),
];
const openssl = programOf('openssl', 'OpenSSL');
const script = programOf('script', 'util-linux');

jest.setTimeout(120_000); // each process compiles what it runs

const scene = scenario({ rateLimit: false });
let folder: string;
let env: NodeJS.ProcessEnv;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-process-'));
  scene.afterwards(() => rm(folder, { recursive: true }));
  env = { PATH: process.env.PATH, ...configuredFor(scene.service, { DEBATE_SPACE_RATE_LIMIT: 'off' }) };
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The command line as a process; its output so far, and how it ended. */
function start(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [...program, ...args], { cwd: folder, env: { ...env, ...more } });
  return watched(child);
}

function watched(child: ChildProcess) {
  const written = { out: '', err: '' };
  child.stdout?.on('data', (text) => (written.out += String(text)));
  child.stderr?.on('data', (text) => (written.err += String(text)));
  const ended = once(child, 'close').then(([code]): Ended => ({ code: code as number | null, ...written }));
  const told = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        if (written.out.includes(text) || written.err.includes(text)) resolve();
      };
      child.stdout?.on('data', look);
      child.stderr?.on('data', look);
      void ended.then(({ out, err }) => {
        reject(new Error(`it ended with:\n${out}${err}`));
      });
    });
  return { child, ended, told };
}

const run = (args: readonly string[], more?: NodeJS.ProcessEnv): Promise<Ended> => start(args, more).ended;

describe('npx debate-space', () => {
  it('prints its version, and help with examples and exit codes', async () => {
    expect(await run(['--version'])).toEqual({
      code: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      err: '',
    });
    const { code, out, err } = await run(['--help']);
    expect([code, err]).toEqual([0, '']);
    expect(out).toMatch(/Examples:\n {2}npx debate-space doctor/);
    expect(out).toMatch(/^ {2}3 +a setting is missing or wrong/m);
    expect(await run(['users', 'fnd', 'ada'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('find'),
    });
    expect(await run([])).toMatchObject({ code: 2, err: expect.stringContaining('Usage: debate-space') });
  });

  it('ends with 1, and says so, when its reader goes away in the middle', async () => {
    for (let user = 0; user < 5000; user += 1)
      scene.service.users.add({ uid: `user-${user}`, email: 'x'.repeat(200) });
    const shell = `set -o pipefail; "$0" "$@" | head -n 1`;
    const child = spawn('bash', ['--norc', '-c', shell, process.execPath, ...program, 'users', 'export'], {
      cwd: folder,
      env,
    });
    const { code, out, err } = await watched(child).ended;
    expect([code, err]).toEqual([1, expect.stringContaining('stdout cannot be written (EPIPE)')]);
    expect(out).toContain('"uid":"alice"');
  });
});

describe('a command whose stdout', () => {
  const shell = (command: string): Promise<Ended> => {
    const words = [command, process.execPath, ...program, 'users', 'list', '--per-page', '100'];
    return watched(spawn('bash', ['--norc', '-c', ...words], { cwd: folder, env })).ended;
  };
  const full = existsSync('/dev/full') ? it : it.skip; // of Linux

  full('is a full disk ends with 1, and says so', async () => {
    const { code, err } = await shell('exec "$0" "$@" > /dev/full');
    expect([code, err]).toEqual([
      1,
      'stdout cannot be written (ENOSPC): the answer is missing or incomplete.\n',
    ]);
  });

  it('is a file that takes only the beginning ends with 1, and says so', async () => {
    for (let user = 0; user < 90; user += 1)
      scene.service.users.add({ uid: `user-${user}`, email: 'x'.repeat(200) });
    const { code, err } = await shell('ulimit -f 1; exec "$0" "$@" > users.txt');
    expect([code, err]).toEqual([
      1,
      'stdout cannot be written (EFBIG): the answer is missing or incomplete.\n',
    ]);
    expect((await stat(join(folder, 'users.txt'))).size).toBe(1024);
  });

  it('is a file writes all of the answer to it', async () => {
    const { code, err } = await shell('exec "$0" "$@" >> users.txt');
    expect([code, err]).toEqual([0, '']);
    expect(await readFile(join(folder, 'users.txt'), 'utf8')).toMatch(/^uid .*\nalice .*2 users in all\n$/s);
  });
});

describe('a command that is interrupted', () => {
  it('stops an erasure cleanly, and continues when it runs again', async () => {
    scene.service.faults.add({ kind: 'status', status: 503, operation: 'anonymize' });
    const command = [
      'erase',
      'alice',
      'bob',
      '--mode',
      'anonymize',
      '--reference',
      'case-1',
      '--execute-here',
      '--yes',
    ];
    const storage = await sqliteFile(join(folder, 'debate-space.db'));
    const { child, told, ended } = start(command, storage);
    await told('(503)');
    child.kill('SIGTERM');
    const { code, err } = await ended;
    expect(code).toBe(5);
    expect(err).toMatch(
      /an app that shares it goes on.*erasures pause case-1.*Go on: the same command with --reference case-1\./,
    );

    scene.service.faults.clear();
    const again = await run([...command, '--json'], storage);
    expect(again.code).toBe(0);
    expect(JSON.parse(again.out)).toMatchObject({ reference: 'case-1', total: 2, done: 2, state: 'done' });
  });

  it('leaves no file of an export behind when a second signal ends the process immediately', async () => {
    const newFile = new URL('../../libs/debate-space-cli/src/users-export.ts', import.meta.url).href;
    const text = `import { writeNewFile } from '${newFile}';
      await writeNewFile('${folder}/users.csv', (stream) => new Promise(() => {
        stream.write('uid', () => process.exit(130));
      }));`;
    const child = spawn(process.execPath, [...program.slice(0, 2), '--input-type=module', '-e', text]);
    expect((await watched(child).ended).code).toBe(130);
    expect(await readdir(folder)).toEqual([]);
  });

  it('stops reading a list that does not end', async () => {
    const { child, told, ended } = start([
      'erase',
      '--file',
      '-',
      '--format',
      'lines',
      '--mode',
      'delete',
      '--yes',
      '--reference',
      'case-2',
    ]);
    child.stdin?.write('alice\n');
    await told('reference: case-2');
    child.kill('SIGINT');
    const { code, err } = await ended;
    expect(code).toBe(5);
    expect(err).toContain('nothing of it is carried out');
    expect(scene.service.users.all()).toHaveLength(2);
  });
});

script.describe('a command on a terminal', () => {
  it('asks, shows a bar, and does what was typed', async () => {
    const command = ['erase', 'alice', 'bob', '--mode', 'anonymize'];
    const quoted = [process.execPath, ...program, ...command].map((part) => `'${part}'`).join(' ');
    const child = spawn(script.path ?? 'script', ['-qec', quoted, '/dev/null'], { cwd: folder, env });
    const { told, ended } = watched(child);
    await told('Type "anonymize 2" to proceed: ');
    child.stdin.write('anonymize 2\r');
    const { code, out } = await ended;
    expect(out).toMatch(/█+ 100 % \| 2 of 2/);
    expect(code).toBe(0);
    expect(scene.service.received.of('anonymize')).toHaveLength(2);
  });
});

openssl.describe('doctor with an https: address', () => {
  it('finds no problem where all is well', async () => {
    const { certFile, ...pair } = await selfSigned(folder, '-addext', 'subjectAltName=DNS:localhost');
    const server = createServer(pair, (incoming, outgoing) => {
      const { method, url = '', headers } = incoming;
      const passed = request(new URL(url, scene.service.url), { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(passed);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    try {
      const { code, out } = await run(['doctor'], {
        DEBATE_SPACE_AUTH_URL: url,
        NODE_EXTRA_CA_CERTS: certFile,
      });
      expect(code).toBe(0);
      expect(out).toMatch(/^✓ address +localhost:\d+ answers 400/m);
      expect(out).toMatch(/^✓ users /m);
    } finally {
      server.close();
    }
  });
});
