import { describe, expect, it } from '@jest/globals';
import { memoryStorage } from './memory.js';
import { rangePages, type PageOptions, type Storage, type RangeOptions, type StorageRow } from './storage.js';

const context = {
  namespace: 'app',
  families: ['a', 'b'],
  contained: (work: () => void): void => {
    work();
  },
};

describe('the pages of a range', () => {
  const keys = Array.from({ length: 25 }, (_, n) => `a:${n % 3 ? n : `${n} `}`).toSorted();

  async function filled(): Promise<Storage> {
    const storage = await memoryStorage().open(context);
    await storage.commit(new Map(), new Map([...keys, 'b:1'].map((key) => [key, ''])));
    return storage;
  }

  async function walk(storage: Storage, options?: PageOptions): Promise<readonly string[][]> {
    const pages: string[][] = [];
    for await (const rows of rangePages(storage, 'a:', 'a;', options)) pages.push(rows.map(([key]) => key));
    return pages;
  }

  it.each([1, 4, 5, 24, 25, 26])('of %d have every row once, in order', async (size) => {
    const pages = await walk(await filled(), { size });
    expect(pages.flat()).toEqual(keys);
    expect(pages.map((page) => page.length).slice(0, -1)).toEqual(pages.slice(1).map(() => size));
    expect(pages.every((page) => page.length > 0)).toBe(true);
    expect((await walk(await filled(), { size, reverse: true })).flat()).toEqual(keys.toReversed());
  });

  it('are none of an empty range', async () => {
    expect(await walk(await memoryStorage().open(context))).toEqual([]);
  });

  it('never ask for more rows than their size', async () => {
    const storage = await filled();
    const limits: number[] = [];
    const watched = Object.create(storage, {
      range: {
        value: (from: string, to: string, options: RangeOptions): unknown => {
          limits.push(options.limit);
          return storage.range(from, to, options);
        },
      },
    }) as Storage;
    await walk(watched, { size: 10 });
    expect(limits).toEqual([10, 10, 10]);
  });

  it('go on when the row at which a page ended was removed', async () => {
    const storage = await filled();
    const seen: StorageRow[] = [];
    for await (const rows of rangePages(storage, 'a:', 'a;', { size: 4 })) {
      seen.push(...rows);
      await storage.commit(new Map(), new Map(rows.map(([key]) => [key, undefined])));
    }
    expect(seen.map(([key]) => key)).toEqual(keys);
    expect(await storage.count('a')).toBe(0);
  });
});
