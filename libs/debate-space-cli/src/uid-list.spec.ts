import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { CliIo } from './cli-context.js';
import { snapshotOf, uidList, uidsOf, type UidList } from './uid-list.js';

let folder: string;
let io: CliIo;
let list: UidList;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cli-uid-list-'));
  const stream = new PassThrough();
  io = {
    env: {},
    folder,
    stdin: stream,
    stdout: stream,
    stderr: stream,
    interrupted: new AbortController().signal,
  };
  list = uidList({ uids: [], file: 'users.txt' }, io);
  await writeFile(join(folder, 'users.txt'), 'ada\n\n..\nben\n');
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe('the snapshot of a list', () => {
  it('keeps the rows after the file is gone', async () => {
    const snapshot = await snapshotOf(list);
    await rm(join(folder, 'users.txt'));
    expect(snapshot).toEqual([
      { row: 1, uid: 'ada' },
      { row: 3, problem: 'the uid has a dot segment' },
      { row: 4, uid: 'ben' },
    ]);
  });

  it('holds no more than its limit', async () => {
    await expect(snapshotOf(list, 3)).resolves.toHaveLength(3);
    await expect(snapshotOf(list, 2)).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('--yes'),
    });
  });
});

describe('the uids of a list', () => {
  it('end with an error at the first row without one, which has its number', async () => {
    const seen: string[] = [];
    const reading = async () => {
      for await (const uid of uidsOf(await list.open())) seen.push(uid);
    };
    await expect(reading()).rejects.toMatchObject({
      exitCode: 2,
      message: 'row 3: the uid has a dot segment',
    });
    expect(seen).toEqual(['ada']);
  });

  it('are those of the command line, when no file is named', async () => {
    const named = uidList({ uids: ['ada', ''] }, io);
    expect(await snapshotOf(named)).toEqual([
      { row: 1, uid: 'ada' },
      { row: 2, problem: 'the uid is empty' },
    ]);
  });
});
