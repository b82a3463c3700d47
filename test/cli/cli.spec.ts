import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cli = join(root, 'libs/debate-space-cli');
const bin = 'bin/debate-space.js';

// Built here: there may be no build, and another spec may just be building. Without the plugin and NestJS, which are most
// of the time that a start takes: a command that needs them for its help fails.
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-'));
  for (const part of ['bin', 'package.json'])
    await cp(join(cli, part), join(folder, part), { recursive: true });
  const commander = dirname(createRequire(join(cli, 'package.json')).resolve('commander'));
  await cp(commander, join(folder, 'node_modules/commander'), { recursive: true });
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

/** @param to the file that stdout is; otherwise it is a pipe */
async function run(args: string, to = '') {
  const shell = to === '' ? 'exec "$0" "$@"' : `exec "$0" "$@" > ${to}`;
  const words = ['--norc', '-c', shell, process.execPath, join(folder, bin), ...args.split(' ')];
  const child = spawn('bash', words, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, out, err };
}

describe('the command debate-space', () => {
  // npm links a command only when its file exists at the installation, which is before the build.
  it('is an executable file that git tracks, and says how to build it when it is not built', async () => {
    const listed = await promisify(execFile)('git', ['ls-files', '--stage', 'libs/*/bin/*.js'], {
      cwd: root,
    });
    expect(listed.stdout).toMatch(/^100755 .*-cli\/bin\/debate-space.js\n100755 .*-simulator.js\n$/);
    const err = expect.stringContaining('Run `npm run build` in the root of the repository first.');
    expect(await run('--version')).toEqual({ code: 1, out: '', err });
  });

  describe('when it is built', () => {
    beforeAll(async () => {
      const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
      const options = ['-p', join(cli, 'tsconfig.lib.json'), '--noCheck', '--outDir', join(folder, 'dist')];
      await promisify(execFile)(process.execPath, [tsc, ...options]);
    });

    it('prints its version, and help with examples and exit codes', async () => {
      const version = expect.stringMatching(/^\d+\.\d+\.\d+\n$/);
      expect(await run('--version')).toEqual({ code: 0, out: version, err: '' });
      const { code, out } = await run('--help');
      expect([code, out]).toEqual([0, expect.stringMatching(/Examples:\n {2}npx debate-space doctor/)]);
      expect(out).toMatch(/^ {2}3 +a setting is missing or wrong/m);
      expect(await run('erase --help')).toMatchObject({ code: 0, out: expect.stringContaining('--mode') });
    });

    it('ends with the exit code of what happened', async () => {
      expect(await run('users fnd ada')).toMatchObject({ code: 2, err: expect.stringContaining('find') });
      expect(await run('erase --file - --mode delete')).toMatchObject({ code: 2 });
    });

    const full = existsSync('/dev/full') ? it : it.skip; // of Linux
    full('ends with 1, and says so, when stdout is a full disk', async () => {
      const err = 'stdout cannot be written (ENOSPC): the answer is missing or incomplete.\n';
      expect(await run('--help', '/dev/full')).toMatchObject({ code: 1, err });
    });
  });
});
