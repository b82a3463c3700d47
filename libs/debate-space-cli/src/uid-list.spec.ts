import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Surroundings } from './surroundings.js';
import { snapshotOf, uidList, type UidList } from './uid-list.js';

let folder: string;
let list: UidList;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-uid-list-'));
  const stream = new PassThrough();
  const surroundings: Surroundings = { env: {}, folder, stdin: stream, stdout: stream, stderr: stream, interrupted: new AbortController().signal }; // prettier-ignore
  list = uidList({ uids: [], file: 'users.txt' }, surroundings);
  await writeFile(join(folder, 'users.txt'), 'ada\nben\n');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const read = async (from: UidList): Promise<string> => text((await from.open()) as Readable);

describe('the snapshot of a list', () => {
  it('keeps the text after the file is gone', async () => {
    const snapshot = await snapshotOf(list);
    await rm(join(folder, 'users.txt'));
    expect(await read(snapshot)).toBe('ada\nben\n');
    expect(await read(snapshot)).toBe('ada\nben\n');
    expect(snapshot.options).toEqual({ format: 'lines', column: undefined });
  });

  it('holds no more than its limit', async () => {
    await expect(snapshotOf(list, 8)).resolves.toBeDefined();
    await expect(snapshotOf(list, 7)).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('--dry-run'),
    });
  });
});
