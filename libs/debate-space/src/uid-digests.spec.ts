import { describe, expect, it } from '@jest/globals';
import { UidDigests } from './uid-digests.js';

describe('a set of digests of uids', () => {
  it('tells what is new, what is there, and how many', () => {
    const digests = new UidDigests();
    expect([digests.add('ada'), digests.add('ben'), digests.add('ada')]).toEqual([true, true, false]);
    expect(digests.size).toBe(2);
    expect([digests.delete('ada'), digests.delete('ada'), digests.delete('cleo')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(digests.size).toBe(1);
    expect(digests.add('ada')).toBe(true);
  });

  it('stays right while it grows and what it has is removed', () => {
    const digests = new UidDigests();
    const uids = Array.from({ length: 10_000 }, (_, n) => `user-${n}`);
    for (const [n, uid] of uids.entries()) {
      expect(digests.add(uid)).toBe(true);
      if (n % 3 === 0) expect(digests.delete(uid)).toBe(true);
    }
    expect(digests.size).toBe(6666);
    expect(uids.filter((uid) => digests.delete(uid))).toEqual(uids.filter((_, n) => n % 3 !== 0));
    expect(digests.size).toBe(0);
  });
});
