import { describe, expect, it } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { text } from 'node:stream/consumers';
import type { DebateSpaceUser } from './remote/user-page.js';
import { exportOf } from './users-export.js';

type Pages = AsyncIterable<readonly DebateSpaceUser[]>;

/** One page, and then one that never comes: the walk ends with the signal only. */
async function* hanging(signal: AbortSignal): Pages {
  yield [{ uid: 'ada' }];
  signal.throwIfAborted();
  await new Promise((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(new Error('aborted'));
    });
  });
}

describe('the stream of an export', () => {
  it.each([
    ['without an error', undefined],
    ['with an error', new Error('the disk is full')],
  ])('ends the walk when it is destroyed %s', async (_what, error) => {
    let walk: AbortSignal | undefined;
    const exported = exportOf((signal) => hanging((walk = signal)), {});
    const closed = new Promise((resolve) => exported.once('close', resolve));
    exported.on('error', () => undefined).once('data', () => exported.destroy(error));
    await closed;
    expect(walk?.aborted).toBe(true);
    expect(exported.errored).toBe(error ?? null);
  });

  it('ends the walk when the loop over it is left', async () => {
    let walk: AbortSignal | undefined;
    for await (const line of exportOf((signal) => hanging((walk = signal)), {})) {
      expect(line).toBe('{"uid":"ada"}\n');
      break;
    }
    expect(walk?.aborted).toBe(true);
  });

  it('hands on the caller’s signal, and leaves nothing on it', async () => {
    const caller = new AbortController();
    const reading = text(exportOf(hanging, { signal: caller.signal }));
    caller.abort();
    await expect(reading).rejects.toThrow('abort');

    const { signal } = new AbortController();
    const one = async function* (): Pages {
      yield await Promise.resolve([{ uid: 'ada' }]);
    };
    expect(await text(exportOf(one, { signal }))).toBe('{"uid":"ada"}\n');
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('is text, whose characters are never cut', async () => {
    const long = async function* (): Pages {
      for (let n = 0; n < 10; n += 1) yield await Promise.resolve([{ uid: 'ë🦊'.repeat(10_000) }]);
    };
    for await (const piece of exportOf(long, { format: 'csv', columns: ['uid'] })) {
      expect(typeof piece).toBe('string');
      expect((piece as string).isWellFormed()).toBe(true);
    }
  });
});
