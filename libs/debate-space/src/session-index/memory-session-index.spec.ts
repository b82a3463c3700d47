import { afterEach, expect, it, jest } from '@jest/globals';
import TinyQueue from 'tinyqueue';
import { memorySessionIndex } from './memory-session-index.js';

const session = (hash: string) => ({ hash, uidHash: 'alice', expiresAt: Date.now() + 60_000, sealed: '' });

const lengthOf = (queue: unknown) => (queue instanceof TinyQueue ? queue.length : Infinity);

afterEach(() => {
  jest.restoreAllMocks();
});

it.each([
  ['rolls with every request', (n: number) => `s-${n % 10}`, () => false],
  ['ends soon after it began', (n: number) => `s-${n}`, () => true],
])('does not grow by a session that %s', async (_what, hashOf, ends) => {
  const push = jest.spyOn(TinyQueue.prototype, 'push');
  const index = await memorySessionIndex().open('app');
  let most = 0;
  for (let n = 0; n < 10_000; n += 1) {
    await index.put(session(hashOf(n)));
    if (ends()) await index.remove(hashOf(n), 'alice');
    most = Math.max(most, lengthOf(push.mock.contexts.at(-1)));
  }
  expect(most).toBeLessThan(100);
});
