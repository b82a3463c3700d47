import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ServerCalls } from './server-calls.js';

const NO_ANSWER = expect.objectContaining({ problem: 'Postgres failed (no answer)', unreachable: true });

describe('the calls of a storage at a server', () => {
  /** How to answer the calls that are at the server, in order. */
  let answers: (() => void)[];
  const work = (): Promise<void> => new Promise((resolve) => answers.push(resolve));
  beforeEach(() => {
    jest.useFakeTimers();
    answers = [];
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([
    ['of one connection', 1, 1],
    ['of four connections', 4, 2],
    ['of a hundred connections', 100, 5],
    ['of an unknown size', undefined, 5],
  ])('leave half of a pool %s to the host', (_size, connections, places) => {
    const calls = new ServerCalls('Postgres', 1_000, connections);
    for (let n = 0; n < 9; n += 1) void calls.run(work).catch(() => undefined);
    expect(answers).toHaveLength(places);
  });

  it('keep their places until the driver settles them, and send nothing while no place is free', async () => {
    const calls = new ServerCalls('Postgres', 1_000, 4);
    const first = Promise.allSettled([calls.run(work), calls.run(work), calls.run(work)]);
    await jest.advanceTimersByTimeAsync(1_000);
    const rejected = { status: 'rejected', reason: NO_ANSWER };
    expect(await first).toEqual([rejected, rejected, rejected]);
    await expect(calls.run(work)).rejects.toEqual(NO_ANSWER); // at once
    expect(answers).toHaveLength(2);

    answers[0]?.();
    await jest.advanceTimersByTimeAsync(0);
    const [next, another] = [calls.run(work), calls.run(work)];
    expect(answers).toHaveLength(3);
    answers[2]?.();
    await next;
    await jest.advanceTimersByTimeAsync(0);
    answers[3]?.();
    await another;
  });

  it('wait for a place no longer than for an answer', async () => {
    const calls = new ServerCalls('Postgres', 1_000, 1);
    const [begun, waiting] = [calls.run(work), calls.run(work)];
    const ends = Promise.allSettled([begun, waiting]);
    await jest.advanceTimersByTimeAsync(900);
    answers[0]?.();
    await jest.advanceTimersByTimeAsync(50);
    expect(answers).toHaveLength(2);
    await jest.advanceTimersByTimeAsync(50);
    expect((await ends).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });
});
