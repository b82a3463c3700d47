import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  EndingHost,
  endOf,
  Leaving,
  type Candidate,
  type Users,
} from 'debate-space-fixtures/leaving-requests.js';
import { isCertain, isDone, isRenewed } from './decide-end.js';

const cannotBeAsked: Users = () => Promise.reject(new Error('the store does not answer'));
const stays = (): Leaving => new Leaving('s1', []);
const renews = (): Leaving => new Leaving('s2', ['sid=s2']);
const clears = (): Leaving => new Leaving('s1', ['sid=; Max-Age=0']);

it('the session of a user that another request renews while the store is read for the first has not ended', async () => {
  const [first, other] = [new Leaving('s1', ['theme=dark']), renews()];
  const host = new EndingHost(async (sid) => {
    if (!other.isFinished) other.close(); // while the store answers
    await nextTurn();
    return sid === 's2' ? 'alice' : undefined;
  });
  const { verdict } = host.judge({ actors: [first, other] });
  await nextTurn();
  first.close();
  expect(await verdict).toBe(false);
});

it('the session of a browser that goes on with another one has not ended when that one ends, too', async () => {
  const reads: string[] = [];
  // By the second time, the new session has ended as well, and is reported for itself.
  const host = new EndingHost((sid) => (reads.push(sid) === 1 && sid === 's2' ? 'alice' : undefined));
  const { verdict } = host.judge({ actors: [renews().close()], outcomes: ['silent'] });
  expect(await verdict).toBe(false);
});

describe('when the store cannot be asked after the answer', () => {
  const cases = [
    { what: 'a user whose request has renewed the session goes on', left: 's2', user: 'alice', ended: false },
    { what: 'a user whose request goes on with nobody has left', left: 's2', user: undefined, ended: true },
    { what: 'a user whose request goes on with another user has left', left: 's2', user: 'bob', ended: true },
    {
      what: 'a session that the store has ended is not one to go on with',
      left: 's1',
      user: 'alice',
      ended: true,
    },
  ];
  it.each(cases)('$what', async ({ left, user, ended }) => {
    const host = new EndingHost(cannotBeAsked);
    host.userNow = user;
    const { verdict } = host.judge({ actors: [new Leaving(left, [`sid=${left}`]).close()] });
    expect(await verdict).toBe(ended);
  });
});

describe('when all is over, the session has', () => {
  const both = { s1: 'alice', s2: 'alice' };
  const cases: (Candidate & { what: string; stored?: Record<string, string> | Users; ended: boolean })[] = [
    { what: 'ended when the store says so', stored: both, ended: true },
    {
      what: 'not ended when the call has failed, and left it',
      outcomes: ['failed'],
      stored: both,
      ended: false,
    },
    { what: 'ended when the call has failed after its effect', outcomes: ['failed'], ended: true },
    {
      what: 'not ended when the call has failed, and the store cannot be asked',
      ...{ outcomes: ['failed'], stored: cannotBeAsked, ended: false },
    },
    {
      what: 'not ended when all were to be cleared, in vain',
      outcomes: ['failed'],
      sid: undefined,
      ended: false,
    },
    {
      what: 'ended when one of two calls has not failed',
      outcomes: ['failed', 'done'],
      stored: both,
      ended: true,
    },
    {
      what: 'not ended when the browser stays with it',
      actors: [stays().close()],
      stored: both,
      ended: false,
    },
    { what: 'ended when the browser has no cookie', actors: [clears().close()], stored: both, ended: true },
    {
      what: 'not ended when the browser has renewed it',
      actors: [renews().close()],
      stored: both,
      ended: false,
    },
    {
      what: 'ended when the new one has no user',
      actors: [renews().close()],
      stored: { s1: 'alice' },
      ended: true,
    },
    {
      what: 'ended when the new one has another',
      actors: [renews().close()],
      stored: { s2: 'bob' },
      ended: true,
    },
    {
      what: 'not ended when it was cleared without an id, and the browser has one of the same user',
      ...{ actors: [renews().close()], sid: undefined, stored: both, ended: false },
    },
    {
      what: 'ended when one that takes no part has saved it back',
      ...{ actors: [stays().close()], savedBack: {}, stored: both, ended: true },
    },
    { what: 'ended when a silent store has it no more', outcomes: ['silent'], ended: true },
    {
      what: 'ended when a silent store cannot be asked',
      outcomes: ['silent'],
      stored: cannotBeAsked,
      ended: true,
    },
    {
      what: 'not ended for a job while a request has renewed it',
      ...{ holders: [Object.assign(renews().close(), { hasLetGo: false })], stored: both, ended: false },
    },
  ];
  it.each(cases)('$what', async ({ stored, ended, ...candidate }) => {
    expect(await new EndingHost(stored).judge(candidate).verdict).toBe(ended);
  });

  const moved = [
    { what: 'not ended when it is of the same user', setCookie: 'sid=s2', ended: false },
    { what: 'ended when there is none', setCookie: 'sid=; Max-Age=0', ended: true },
  ];
  it.each(moved)('where another request has given the browser its session, $what', async (row) => {
    const host = new EndingHost({ s1: 'alice', s2: 'alice' });
    const other = new Leaving('s2', [row.setCookie]).close();
    host.moves.answered({ sid: 's1', uid: 'alice' }, other as never, () => 'alice');
    expect(await host.judge({ actors: [stays().close()] }).verdict).toBe(row.ended);
  });
});

describe('a store that has said nothing', () => {
  it('is asked until it is done', async () => {
    let reads = 0;
    const host = new EndingHost(() => ((reads += 1) < 3 ? 'alice' : undefined));
    expect(await host.judge({ outcomes: ['silent'] }).verdict).toBe(true);
    expect(reads).toBe(3);
  });

  it('has ended nothing when it has the session after more than a second', async () => {
    let reads = 0;
    const host = new EndingHost(() => ((reads += 1) < 5 ? 'alice' : undefined));
    const since = performance.now();
    expect(await host.judge({ outcomes: ['silent', 'done'] }).verdict).toBe(false);
    expect(performance.now() - since).toBeGreaterThan(1_000);
  });
});

describe('before the answer of a request has left, the end of its session', () => {
  const gone = new Leaving('s2', []);
  const holding = Object.assign(stays(), { hasLetGo: false });
  const cases: (Candidate & { is: string; when: string; userNow?: string; certain: boolean })[] = [
    { is: 'certain', when: 'the store has done it', certain: true },
    { is: 'certain', when: 'another user goes on', userNow: 'bob', certain: true },
    { is: 'not certain', when: 'the user goes on', userNow: 'alice', certain: false },
    { is: 'not certain', when: 'the store is still at it', outcomes: ['done', undefined], certain: false },
    { is: 'not certain', when: 'the store says nothing', outcomes: ['done', 'silent'], certain: false },
    { is: 'not certain', when: 'the store has failed', outcomes: ['failed'], certain: false },
    { is: 'certain', when: 'another call has failed', outcomes: ['failed', 'done'], certain: true },
    { is: 'not certain', when: 'its user is kept', isKept: true, certain: false },
    { is: 'not certain', when: 'the store clears what it does not name', sid: undefined, certain: false },
    {
      is: 'not certain',
      when: 'another request has renewed it',
      userNow: 'bob',
      holders: [renews()],
      certain: false,
    },
    { is: 'not certain', when: 'another request is ending it', actors: [gone, stays()], certain: false },
    { is: 'not certain', when: 'another one alone is ending it', actors: [stays()], certain: false },
    { is: 'certain', when: 'another request only has it', holders: [holding], certain: true },
    { is: 'certain', when: 'the request has let go of it', actors: [], holders: [gone], certain: true },
  ];
  it.each(cases)('is $is when $when', ({ userNow, certain, ...candidate }) => {
    const end = endOf({ actors: [gone], ...candidate });
    expect(isCertain(end, gone as never, userNow)).toBe(certain);
  });

  const renewals: (Candidate & { when: string; userNow?: string; sessionID?: string; renewed: boolean })[] = [
    { when: 'its user goes on with another session', renewed: true },
    { when: 'the store has not ended it', outcomes: ['failed'], renewed: false },
    { when: 'another user goes on', userNow: 'bob', renewed: false },
    { when: 'the session is the same', sessionID: 's1', renewed: false },
  ];
  it.each(renewals)('is a renewal: $renewed when $when', (row) => {
    const { userNow = 'alice', sessionID = 's2', renewed, ...candidate } = row;
    expect(isRenewed(endOf(candidate), new Leaving(sessionID, []) as never, userNow)).toBe(renewed);
  });
});

it('the store has not done what nobody has called it for', () => {
  expect(isDone(endOf({ outcomes: [] }))).toBe(false);
});
