import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

const cli = join(root, 'libs/debate-space-cli');

// Compiled here: there may be no build, and another spec may just be building.
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-start-'));
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const project = join(cli, 'tsconfig.lib.json');
  await run(process.execPath, [tsc, '-p', project, '--noCheck', '--outDir', join(folder, 'dist')]);
  for (const part of ['bin', 'package.json'])
    await cp(join(cli, part), join(folder, part), { recursive: true });
  const commander = dirname(createRequire(join(cli, 'package.json')).resolve('commander'));
  await cp(commander, join(folder, 'node_modules/commander'), { recursive: true });
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

// The plugin and NestJS are most of the time that a start takes.
it.each(['--version', '--help', 'erase --help'])(
  'the command needs no package but commander for %s',
  async (line) => {
    const { stdout } = await run(process.execPath, [join(folder, 'bin/debate-space.js'), ...line.split(' ')]);
    expect(stdout).not.toBe('');
  },
);
