import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

const packages = [
  { name: 'debate-space', workspace: 'libs/debate-space-cli' },
  { name: 'debate-space-simulator', workspace: 'libs/debate-space-simulator' },
];

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bin-files-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe.each(packages)('the command $name', ({ name, workspace }) => {
  const bin = `bin/${name}.js`;

  // npm links a command only when its file exists at the installation, which is before the build.
  it('is an executable file that git tracks', async () => {
    const { bin: bins } = JSON.parse(await readFile(join(root, workspace, 'package.json'), 'utf8')) as {
      bin: unknown;
    };
    expect(bins).toEqual({ [name]: `./${bin}` });
    const { stdout } = await run('git', ['ls-files', '--stage', `${workspace}/${bin}`], { cwd: root });
    expect(stdout).toMatch(/^100755 /);
  });

  it('says how to build it when the repository is not built', async () => {
    await cp(join(root, workspace, bin), join(folder, bin));
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await expect(run(process.execPath, [join(folder, bin)])).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('Run `npm run build` in the root of the repository first.'),
    });
  });

  it('starts the program when it is built', async () => {
    await cp(join(root, workspace, bin), join(folder, bin));
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await mkdir(join(folder, 'dist'));
    await writeFile(join(folder, 'dist/cli.js'), 'console.log(process.argv.slice(2).join());');
    expect((await run(process.execPath, [join(folder, bin), '--version'])).stdout).toBe('--version\n');
  });
});
