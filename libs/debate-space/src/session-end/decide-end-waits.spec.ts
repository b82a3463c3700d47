import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { callOf, EndingHost, Leaving } from 'debate-space-fixtures/leaving-requests.js';

const stays = (): Leaving => new Leaving('s1', []);
const renews = (): Leaving => new Leaving('s2', ['sid=s2']);
const clears = (): Leaving => new Leaving('s1', ['sid=; Max-Age=0']);

describe('the verdict', () => {
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
  });
  afterEach(() => {
    jest.useRealTimers();
  });
  const pass = (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);

  it('waits for every call of the store, and the first outcome of each stands', async () => {
    const calls = [callOf(undefined), callOf(undefined)];
    const judged = new EndingHost({ s1: 'alice' }).judge({ calls });
    for (const call of calls) {
      await pass(12_000);
      expect(judged.ended).toBeUndefined();
      call.end('failed');
      call.end('done');
    }
    expect(await judged.verdict).toBe(false);
  });

  it('does not wait for a call that the store forgets, but asks the store', async () => {
    const judged = new EndingHost().judge({ outcomes: [undefined] });
    await pass(24_999);
    expect(judged.ended).toBeUndefined();
    await pass(1);
    expect(await judged.verdict).toBe(true);
  });

  it('on a call that the shutdown cuts off is an end', async () => {
    const host = new EndingHost({ s1: 'alice' });
    const { verdict } = host.judge({ outcomes: [undefined] });
    host.waits.close();
    expect(await verdict).toBe(true);
  });

  it('waits for the response, as long as it takes', async () => {
    const actor = clears();
    const judged = new EndingHost().judge({ actors: [actor] });
    await pass(60_000);
    actor.abort(); // its handler may log the user in again
    await pass(60_000);
    expect(judged.ended).toBeUndefined();
    actor.close();
    expect(await judged.verdict).toBe(true);
  });

  it('waits for a response whose head has left, such as a stream, no longer than a grace', async () => {
    const actor = Object.assign(clears(), { isCommitted: true });
    const judged = new EndingHost().judge({ actors: [actor] });
    await pass(500);
    expect(judged.ended).toBeUndefined();
    await pass(500);
    expect(judged.ended).toBe(true);
  });

  it('notices a response that is over though nobody says so', async () => {
    const actor = clears();
    const judged = new EndingHost().judge({ actors: [actor] });
    await pass(100);
    expect(judged.ended).toBeUndefined();
    actor.isFinished = true;
    await pass(500);
    expect(judged.ended).toBe(true);
  });

  it('waits for no response that cannot be looked at, and that is a fault', async () => {
    const look = (): never => {
      throw new TypeError('of the platform');
    };
    const actor = Object.defineProperty(clears(), 'isCommitted', { get: look });
    const host = new EndingHost();
    const judged = host.judge({ actors: [actor] });
    await pass(500);
    expect(judged.ended).toBe(true);
    expect(host.faults).toEqual(['response']);
  });

  it.each(['before', 'after'])('falls at once by a shutdown %s the call', async (when) => {
    const host = new EndingHost();
    if (when === 'before') host.waits.close();
    const judged = host.judge({ actors: [clears()] });
    await nextTurn();
    host.waits.close();
    expect(await judged.verdict).toBe(true);
    expect(jest.getTimerCount()).toBe(0);
  });

  it.each([
    { does: 'is still open', act: () => undefined, ended: true },
    { does: 'has renewed the session', act: (other: Leaving) => other.close(), ended: false },
  ])('when one request has left and another one $does after a grace, is $ended', async ({ act, ended }) => {
    const [actor, other] = [clears(), renews()];
    const judged = new EndingHost({ s1: 'alice', s2: 'alice' }).judge({ actors: [actor, other] });
    actor.close();
    await pass(999);
    expect(judged.ended).toBeUndefined();
    act(other);
    await pass(1);
    expect(judged.ended).toBe(ended);
  });

  const holders = [
    { does: 'keeps the session', act: () => undefined, ended: true },
    { does: 'lets go of it', act: (holder: Leaving) => (holder.hasLetGo = true), ended: undefined },
    { does: 'renews it', act: (holder: Leaving) => (holder.sessionID = 's2'), ended: undefined },
  ];
  it.each(holders)('on the end by a job, after the grace of a request that $does, is $ended', async (row) => {
    const holder = Object.assign(clears(), { hasLetGo: false });
    const judged = new EndingHost().judge({ holders: [holder] });
    await pass(999);
    row.act(holder);
    expect(judged.ended).toBeUndefined();
    await pass(1);
    expect(judged.ended).toBe(row.ended);
    holder.close();
    expect(await judged.verdict).toBe(true);
  });

  it('on the end by a job falls when the request that has the session is closed', async () => {
    const holder = Object.assign(stays(), { hasLetGo: false });
    const judged = new EndingHost().judge({ holders: [holder] });
    holder.close();
    expect(await judged.verdict).toBe(true);
    expect(jest.getTimerCount()).toBe(0);
  });
});
