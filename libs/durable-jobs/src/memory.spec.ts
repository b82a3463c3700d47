import { describe, expect, it } from '@jest/globals';
import { memoryStorage } from './memory.js';

const context = {
  namespace: 'app',
  families: ['a'],
  contained: (work: () => void): void => {
    work();
  },
};

describe('the storage in memory', () => {
  it('answers synchronously', () => {
    const storage = memoryStorage().open(context);
    if (storage instanceof Promise) throw new Error('opened asynchronously');
    expect(storage.commit(new Map([['a:1', undefined]]), new Map([['a:1', '1']]))).toBe(true);
    expect(storage.get(['a:1'])).toEqual(['1']);
    expect(storage.range('a:', 'a;', { limit: 1 })).toEqual([['a:1', '1']]);
    expect(storage.count('a')).toBe(1);
    expect(storage.close()).toBeUndefined();
  });

  it('is not durable, and says so', () => {
    expect(memoryStorage()).toMatchObject({ durable: false, guarantee: expect.stringContaining('lost') });
  });

  it('changes nothing when a key has an unknown family', () => {
    const storage = memoryStorage().open(context);
    if (storage instanceof Promise) throw new Error('opened asynchronously');
    const changes = new Map([
      ['a:1', '1'],
      ['unknown:alice', '2'],
    ]);
    expect(() => storage.commit(new Map(), changes)).toThrow(
      /^The storage was opened without the family of this key$/,
    );
    expect(storage.count('a')).toBe(0);
  });
});
