import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import type { WriteStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { writeNewFile } from './users-export.js';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-new-file-'));
  path = join(folder, 'users.csv');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const write = (stream: WriteStream): Promise<void> => pipeline(Readable.from(['uid\n', 'ada\n']), stream);

describe('a new file', () => {
  it('has its text and belongs to its owner only', async () => {
    await writeNewFile(path, write);
    expect(await readFile(path, 'utf8')).toBe('uid\nada\n');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['users.csv']);
  });

  it('disappears when writing fails', async () => {
    const failing = writeNewFile(path, async (stream) => {
      await new Promise((resolve) => stream.write('uid\n', resolve));
      throw new Error('the service fails');
    });
    await expect(failing).rejects.toThrow('the service fails');
    expect(await readdir(folder)).toEqual([]);
  });

  it('does not replace a file', async () => {
    await writeFile(path, 'of somebody else');
    await expect(writeNewFile(path, write)).rejects.toThrow('users.csv exists; name another file.');
    expect(await readFile(path, 'utf8')).toBe('of somebody else');
  });

  it('does not replace a link that leads nowhere', async () => {
    await symlink(join(folder, 'missing'), path);
    await expect(writeNewFile(path, write)).rejects.toThrow('users.csv exists');
    expect(await readdir(folder)).toEqual(['users.csv']);
  });

  it('needs a folder', async () => {
    const missing = writeNewFile(join(folder, 'missing/users.csv'), write);
    await expect(missing).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('(ENOENT)'),
    });
  });
});
