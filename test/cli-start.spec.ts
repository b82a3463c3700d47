import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const run = promisify(execFile);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-start-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

// The plugin and NestJS are most of the time that a start takes.
it.each(['--version', '--help', 'erase --help', 'completion bash'])(
  'the built command needs no package but commander for %s',
  async (line) => {
    for (const part of ['bin', 'dist', 'package.json'])
      await cp(join(root, 'libs/debate-space-cli', part), join(folder, part), { recursive: true });
    const commander = dirname(
      createRequire(join(root, 'libs/debate-space-cli/package.json')).resolve('commander'),
    );
    await cp(commander, join(folder, 'node_modules/commander'), { recursive: true });
    const { stdout } = await run(process.execPath, [join(folder, 'bin/debate-space.js'), ...line.split(' ')]);
    expect(stdout).not.toBe('');
  },
);
