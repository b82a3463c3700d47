import { describe, expect, it, jest } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Leaving } from 'debate-space-fixtures/leaving-requests.js';
import {
  asRequest,
  asRequests,
  done,
  endBy,
  endOfJob,
  gone,
  livesIn,
  trackerOf,
} from 'debate-space-fixtures/tracked-ends.js';
import { ObservedCall } from './decide-end.js';
import type { PossibleEnd } from './end-tracker.js';

/** Whether the answer waits, which has ended to its handler. */
const isHeld = ({ res }: Leaving): boolean => Object.hasOwn(res, 'writableEnded');

describe('sessions that a job ends', () => {
  const many = (call: () => ObservedCall): PossibleEnd[] =>
    Array.from({ length: 250 }, (_, n) => endOfJob(`s${n}`, `user ${n}`, call()));

  it('are reported a hundred in each turn of the event loop', async () => {
    const { ends, ended, tasks } = trackerOf(new Map());
    for (const end of many(done)) ends.begin(end);
    const seen: number[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      seen.push(ended.length);
      await nextTurn();
    }
    expect(seen).toEqual([0, 100, 200, 250]);
    ends.begin(endOfJob());
    await tasks.onIdle();
    expect(ended).toHaveLength(251);
  });

  it('while a request is under way delay its answer if they are few', async () => {
    const tracked = trackerOf(new Map(), livesIn([]));
    const request = gone();
    const suspects = { requests: asRequests(request), areOfUser: false };
    for (const end of many(done).slice(0, 100)) tracked.ends.begin(end, suspects);
    request.res.end();
    expect(isHeld(request)).toBe(true);
    await tracked.tasks.onIdle();
    expect(tracked.ended).toHaveLength(100);
  });

  it('while a request is under way do not delay its answer if they are many', async () => {
    const { ends, ended, tasks } = trackerOf(new Map(), livesIn([]));
    const request = gone();
    for (const end of many(done)) ends.begin(end, { requests: asRequests(request), areOfUser: false });
    request.res.end();
    expect(isHeld(request)).toBe(false);
    await tasks.onIdle();
    expect(ended).toHaveLength(250);
  });

  it('that the store has not done yet are reported when it has', async () => {
    const { ends, ended, tasks } = trackerOf(new Map());
    const call = new ObservedCall();
    ends.begin(endOfJob('s1', 'alice', call));
    await nextTurn();
    await nextTurn();
    expect(ended).toEqual([]);
    call.end('done');
    await tasks.onIdle();
    expect(ended).toEqual(['alice']);
  });

  it('without suspects, or during a shutdown, wait for no answer', async () => {
    const { ends, ended, tasks, waits } = trackerOf(new Map());
    ends.begin(endOfJob('s1'), { requests: [], areOfUser: false });
    await tasks.onIdle();
    waits.close();
    ends.begin(endOfJob('s2'), { requests: asRequests(gone()), areOfUser: false });
    await tasks.onIdle();
    expect(ended).toEqual(['alice', 'alice']);
  });

  it.each([
    { whose: 'of their user', areOfUser: true, uids: ['alice', 'alice'], ended: ['alice'] },
    { whose: 'of anybody', areOfUser: false, uids: ['alice', 'alice'], ended: ['alice'] },
    { whose: 'of anybody', areOfUser: false, uids: ['alice', 'bob'], ended: ['alice', 'bob'] },
  ])('of $uids are reported for $ended by a suspect $whose', async ({ areOfUser, uids, ended: expected }) => {
    const { ends, ended, tasks } = trackerOf(new Map());
    const request = gone();
    for (const [n, uid] of uids.entries())
      ends.begin(endOfJob(`s${n}`, uid), { requests: asRequests(request), areOfUser });
    request.res.end();
    await tasks.onIdle();
    expect(ended).toEqual(expected);
  });

  it('are each an end where the store does not tell their ids', async () => {
    const { ends, ended, tasks } = trackerOf(new Map());
    for (const uid of ['alice', 'bob', 'alice'])
      ends.begin({ sid: undefined, uid, reason: 'cleared', call: done() });
    await tasks.onIdle();
    expect(ended).toEqual(['alice', 'bob', 'alice']);
  });
});

describe('an end', () => {
  it('that cannot be decided counts', async () => {
    const { ends, ended, tasks } = trackerOf(new Map([['s1', 'alice']]));
    const broken = Object.defineProperty(new Leaving('s1', []).close(), 'setCookies', {
      get: () => {
        throw new TypeError('of the platform');
      },
    });
    ends.begin(endBy(broken));
    await tasks.onIdle();
    expect(ended).toEqual(['alice']);
  });

  it('is none when a request logs the user in anew while the store is asked', async () => {
    const { ends, ended, tasks } = trackerOf(new Map([['s2', 'alice']]));
    const leaving = new Leaving('s1', ['sid=; Max-Age=0']).close();
    const renewing = new Leaving('s2', ['sid=s2']).close();
    ends.begin(endBy(leaving));
    for (const sid of ['s1', 's1', 's9']) ends.join(sid, 'alice', asRequest(renewing));
    await tasks.onIdle();
    expect(ended).toEqual([]);
  });

  it('leaves no timer behind', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'performance'] });
    const { ends, tasks } = trackerOf(new Map());
    ends.begin(endBy(new Leaving('s1', []).close()));
    await tasks.onIdle();
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  it('of a session that the browser has left is not reported again by the same request', async () => {
    const { ends, ended, tasks } = trackerOf(new Map());
    const leaving = new Leaving('s1', ['sid=; Max-Age=0']).close();
    ends.begin(endBy(leaving));
    await tasks.onIdle();
    ends.begin({ ...endBy(leaving), sid: 's0', reason: 'abandoned' });
    await tasks.onIdle();
    expect(ended).toEqual(['alice']);
  });
});
