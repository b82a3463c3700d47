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

describe('when all is over, the session', () => {
  const both = { s1: 'alice', s2: 'alice' };
  const renewed = renews().close();
  const [failed, silent] = [{ outcomes: ['failed'] }, { outcomes: ['silent'] }] as const;
  type Case = Candidate & { when: string; stored?: Record<string, string> | Users };
  const has: Case[] = [
    { when: 'the store says so', stored: both },
    { when: 'the call has failed after its effect', ...failed },
    { when: 'one of two calls has not failed', outcomes: ['failed', 'done'], stored: both },
    { when: 'the browser has no cookie', actors: [clears().close()], stored: both },
    { when: 'the new one has no user', actors: [renewed], stored: { s1: 'alice' } },
    { when: 'the new one has another user', actors: [renewed], stored: { s2: 'bob' } },
    { when: 'a bystander has saved it back', actors: [stays().close()], savedBack: {}, stored: both },
    { when: 'a silent store has it no more', ...silent },
    { when: 'a silent store cannot be asked', ...silent, stored: cannotBeAsked },
  ];
  it.each(has)('has ended when $when', async ({ stored, ...candidate }) => {
    expect(await new EndingHost(stored).judge(candidate).verdict).toBe(true);
  });

  const hasNot: Case[] = [
    { when: 'the call has failed, and left it', ...failed, stored: both },
    { when: 'the call has failed, and the store cannot be asked', ...failed, stored: cannotBeAsked },
    { when: 'all were to be cleared, in vain', ...failed, sid: undefined },
    { when: 'the browser stays with it', actors: [stays().close()], stored: both },
    { when: 'the browser has renewed it', actors: [renewed], stored: both },
    { when: 'all were cleared, and its user has come back', actors: [renewed], sid: undefined, stored: both },
    { when: 'a bystander has renewed it', holders: [renewed], stored: both },
  ];
  it.each(hasNot)('has not ended when $when', async ({ stored, ...candidate }) => {
    expect(await new EndingHost(stored).judge(candidate).verdict).toBe(false);
  });

  const moved = [
    { another: 'another session of the same user', setCookie: 'sid=s2', ended: false },
    { another: 'none', setCookie: 'sid=; Max-Age=0', ended: true },
  ];
  it.each(moved)('that another request has left the browser $another for has ended: $ended', async (row) => {
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
  type Case = Candidate & { when: string; userNow?: string };
  const certain: Case[] = [
    { when: 'the store has done it' },
    { when: 'another user goes on', userNow: 'bob' },
    { when: 'another call has failed', outcomes: ['failed', 'done'] },
    { when: 'another request only has it', holders: [holding] },
    { when: 'the request has let go of it', actors: [], holders: [gone] },
  ];
  it.each(certain)('is certain when $when', ({ userNow, ...candidate }) => {
    expect(isCertain(endOf({ actors: [gone], ...candidate }), gone as never, userNow)).toBe(true);
  });

  const uncertain: Case[] = [
    { when: 'the user goes on', userNow: 'alice' },
    { when: 'the store is still at it', outcomes: ['done', undefined] },
    { when: 'the store says nothing', outcomes: ['done', 'silent'] },
    { when: 'the store has failed', outcomes: ['failed'] },
    { when: 'its user is kept', isKept: true },
    { when: 'the store clears what it does not name', sid: undefined },
    { when: 'another request has renewed it', userNow: 'bob', holders: [renews()] },
    { when: 'another request is ending it', actors: [gone, stays()] },
    { when: 'another one alone is ending it', actors: [stays()] },
  ];
  it.each(uncertain)('is not certain when $when', ({ userNow, ...candidate }) => {
    expect(isCertain(endOf({ actors: [gone], ...candidate }), gone as never, userNow)).toBe(false);
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
