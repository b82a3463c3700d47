import { expect, it } from '@jest/globals';
import { Batches } from './batches.js';

/** Batches whose calls end when the test says so. */
function controlled() {
  const calls: { readonly items: readonly string[]; end(error?: Error): void }[] = [];
  const batches = new Batches<string>(
    (items) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error): void => {
          if (error) reject(error);
          else resolve();
        };
        calls.push({ items, end });
      }),
  );
  const items = () => calls.map((call) => call.items);
  return { batches, calls, items };
}

it('two calls are under way at most, and what comes in the interim shares the next one', async () => {
  const { batches, calls, items } = controlled();
  const all = ['a', 'b', 'c', 'd', 'e'].map((item) => batches.add(item));
  expect(items()).toEqual([['a'], ['b']]);
  calls[0]?.end();
  await all[0];
  await Promise.resolve();
  expect(items()).toEqual([['a'], ['b'], ['c', 'd', 'e']]);
  calls[1]?.end();
  calls[2]?.end();
  await Promise.all(all);
});

it('a call that fails rejects its own items only, and the next ones are done', async () => {
  const { batches, calls, items } = controlled();
  const ends = ['a', 'b', 'c', 'd'].map((item) => batches.add(item).catch((error: unknown) => error));
  calls[0]?.end();
  await ends[0];
  calls[1]?.end(new Error('away'));
  expect(await ends[1]).toEqual(new Error('away'));
  calls[2]?.end();
  expect(await Promise.all(ends)).toEqual([undefined, new Error('away'), undefined, undefined]);
  expect(items()).toHaveLength(3);
});

it('what waits is withdrawn when it is late, and what has left is not', async () => {
  const { batches, calls, items } = controlled();
  const late = new AbortController();
  const [first, second, withdrawn, last] = ['a', 'b', 'c', 'd'].map((item) =>
    batches.add(item, 'ac'.includes(item) ? late.signal : undefined),
  );
  late.abort();
  await expect(withdrawn).rejects.toThrow('The storage did not take it in time');
  for (const call of calls) call.end();
  await Promise.all([first, second]);
  await Promise.resolve();
  expect(items()).toEqual([['a'], ['b'], ['d']]);
  calls[2]?.end();
  await last;
});
