import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { FORMAT_FAMILY, FormatRow } from './format-row.js';
import { MemoryStorage } from './memory.js';
import { StorageError, type Storage } from './storage.js';

const KEY = 'format:';
const none = new Map<string, string | undefined>();

describe('the format row', () => {
  let storage: Storage;
  const started: FormatRow[] = [];
  beforeEach(() => {
    jest.useFakeTimers();
    storage = new MemoryStorage({ families: [FORMAT_FAMILY] });
  });
  afterEach(() => {
    for (const row of started.splice(0)) row.stop();
    jest.useRealTimers();
  });

  /** A process that looks, and the problems with which it heard that the storage was emptied. */
  async function newProcess(): Promise<{ row: FormatRow; heard: (string | undefined)[] }> {
    const row = await FormatRow.open(storage);
    const heard: (string | undefined)[] = [];
    started.push(row);
    row.start((problem) => heard.push(problem));
    return { row, heard };
  }
  const looks = (count = 1) => jest.advanceTimersByTimeAsync(1_500 * count);
  const put = (value: string | undefined) => storage.commit(none, new Map([[KEY, value]]));
  const stored = async () => (await storage.get([KEY]))[0];

  it('is written when a storage is opened for the first time, and stays', async () => {
    await FormatRow.open(storage);
    const first = await stored();
    expect(JSON.parse(first ?? '')).toEqual({ v: 1, id: expect.any(String) });
    await FormatRow.open(storage);
    expect(await stored()).toBe(first);
  });

  it('is that of the faster process when two start at the same time', async () => {
    const range = storage.range.bind(storage);
    let faster: Awaited<ReturnType<typeof newProcess>> | undefined;
    jest.spyOn(storage, 'range').mockImplementationOnce(async (...args) => {
      const rows = await range(...args);
      faster = await newProcess(); // between the reads of the slower one
      return rows;
    });
    const slower = await newProcess();
    await looks();
    expect([faster?.row.isEmptied, slower.row.isEmptied]).toEqual([false, false]);
  });

  it('refuses the start when a newer version has written it', async () => {
    await put('{"v":2,"id":"x"}');
    await expect(FormatRow.open(storage)).rejects.toMatchObject({
      name: 'StorageError',
      message: expect.stringMatching(/newer version.*format 2, this version knows 1.*hint: install that/),
    });
  });

  it('says nothing while it is there', async () => {
    const { row, heard } = await newProcess();
    await looks(10);
    expect([row.isEmptied, heard]).toEqual([false, []]);
  });

  it('says once that the storage was emptied, and is written again', async () => {
    const { row, heard } = await newProcess();
    const before = await stored();
    await put(undefined);
    await looks();
    expect([row.isEmptied, heard]).toEqual([true, [undefined]]);
    expect(await stored()).not.toBe(before);
    await put(undefined);
    await looks(5);
    expect(heard).toEqual([undefined]);
    expect(await stored()).toBeDefined();
  });

  it('says so when its value is gone and its key is left', async () => {
    const { heard } = await newProcess();
    await put('');
    await looks();
    expect(heard).toEqual([undefined]);
    expect(await stored()).toContain('"v":1');
  });

  it('says so in each process, also when another one has written the row again', async () => {
    const [one, other] = [await newProcess(), await newProcess()];
    await put(undefined);
    await looks();
    expect([one.heard, other.heard]).toEqual([[undefined], [undefined]]);
    const late = await newProcess();
    await looks(3);
    expect([one.heard, other.heard, late.heard]).toEqual([[undefined], [undefined], []]);
  });

  it('says nothing while the storage does not answer', async () => {
    const { row, heard } = await newProcess();
    const range = jest.spyOn(storage, 'range').mockImplementation(() => {
      throw new StorageError('Redis failed (ECONNREFUSED)');
    });
    await looks(3);
    range.mockRestore();
    await looks(3);
    expect([row.isEmptied, heard]).toEqual([false, []]);
  });

  it('stops no boot while the storage does not answer, and is written when it does', async () => {
    const range = jest.spyOn(storage, 'range').mockRejectedValue(new StorageError('away'));
    const { row, heard } = await newProcess();
    await looks(3);
    range.mockRestore();
    expect(await stored()).toBeUndefined();
    await looks(3);
    expect(await stored()).toContain('"v":1');
    expect([row.isEmptied, heard]).toEqual([false, []]);
  });

  it('stops no boot while the storage keeps silent', async () => {
    jest.spyOn(storage, 'range').mockReturnValue(new Promise(() => undefined));
    const opening = FormatRow.open(storage);
    await looks(4);
    expect((await opening).isEmptied).toBe(false);
  });

  it('says so when the storage itself has noticed it, at the first look', async () => {
    Object.assign(storage, { wasEmptied: true });
    const { heard } = await newProcess();
    await looks(3);
    expect(heard).toEqual([undefined]);
  });

  it('says why the storage does not work again', async () => {
    const { heard } = await newProcess();
    await looks();
    Object.assign(storage, { wasEmptied: true });
    jest.spyOn(storage, 'range').mockImplementation(() => {
      throw new StorageError('The table is missing and could not be created (42501)');
    });
    await looks(3);
    const problem = 'The table is missing and could not be created (42501)';
    expect(heard).toEqual([problem]);
  });

  it('is not looked at after the stop', async () => {
    const { row, heard } = await newProcess();
    row.stop();
    await put(undefined);
    await looks(3);
    expect(heard).toEqual([]);
  });
});
