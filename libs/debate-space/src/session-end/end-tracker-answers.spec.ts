import { describe, expect, it } from '@jest/globals';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Leaving } from 'debate-space-fixtures/leaving-requests.js';
import {
  asRequest,
  done,
  endBy,
  endOfJob,
  gone,
  livesIn,
  trackerOf,
} from 'debate-space-fixtures/tracked-ends.js';
import type { TrackedEnds } from 'debate-space-fixtures/tracked-ends.js';
import { ObservedCall } from './decide-end.js';
import type { PossibleEnd } from './end-tracker.js';

describe('by the answer of a request that ends it, a session', () => {
  it('is reported, once', async () => {
    const { ends, ended, tasks } = trackerOf(new Map());
    const leaving = gone();
    ends.begin(endBy(leaving));
    expect(ended).toEqual([]);
    leaving.res.end();
    expect(ended).toEqual(['alice']);
    leaving.close();
    await tasks.onIdle();
    expect(ended).toEqual(['alice']);
  });

  it.each([
    { what: 'is not reported a second time', verdict: { isFirst: false } },
    { what: 'is not reported while the user has another', verdict: { isLast: false } },
  ])('$what', async ({ verdict }) => {
    const notes: string[] = [];
    const tracked = trackerOf(new Map(), livesIn(notes, verdict));
    const leaving = gone();
    tracked.ends.begin(endBy(leaving));
    leaving.res.end();
    await nextTurn();
    expect(notes).toEqual(['s1 ended']);
    expect(tracked.ended).toEqual([]);
  });

  it.each([
    { what: 'the store is still at it', call: new ObservedCall(), sessionID: 's2', sid: 's1' },
    { what: 'it is the same one', call: done(), sessionID: 's1', sid: 's1' },
    { what: 'nobody knows which one has ended', call: done(), sessionID: 's2', sid: undefined },
  ])('is not forgotten when $what', async ({ call, sessionID, sid }) => {
    const notes: string[] = [];
    const { ends } = trackerOf(new Map(), livesIn(notes));
    const staying = gone({ session: 'alice', sessionID });
    ends.begin({ ...endBy(staying), call, sid });
    staying.res.end();
    await nextTurn();
    expect(notes).toEqual([]);
  });

  it('is not reported when another answer has given the browser another one', async () => {
    const { ends, ended, moves, tasks } = trackerOf(new Map([['s3', 'alice']]));
    const other = new Leaving('s3', ['sid=s3']).close();
    moves.answered({ sid: 's1', uid: 'alice' }, asRequest(other), () => 'alice');
    const leaving = gone({ sessionID: 's1' });
    ends.begin(endBy(leaving));
    leaving.res.end();
    leaving.close();
    await tasks.onIdle();
    expect(ended).toEqual([]);
  });

  const others = [
    { name: 'has the same session', more: { sessionID: 's1' } },
    { name: 'is of another browser', more: { cookieHeader: 'sid=s9' } },
    { name: 'has no cookie', more: { cookieHeader: undefined } },
    { name: 'logs another user in', more: { session: 'bob' } },
  ];
  it.each(others)('is reported while another request $name', ({ more }) => {
    const { ends, ended, openRequests } = trackerOf(new Map());
    const leaving = gone();
    openRequests.add(asRequest(Object.assign(gone({ sessionID: 's3', session: 'alice' }), more)));
    ends.begin(endBy(leaving));
    leaving.res.end();
    expect(ended).toEqual(['alice']);
  });

  const saves = [
    { what: 'it has saved itself with its user', by: 'leaving', again: false, ended: [] },
    { what: 'it has saved itself, and ended again', by: 'leaving', again: true, ended: ['alice'] },
    { what: 'another one has saved', by: 'other', again: false, ended: ['alice'] },
    { what: 'a job has saved', by: undefined, again: false, ended: ['alice'] },
  ] as const;
  it.each(saves)('that $what is reported for $ended', ({ by, again, ended: expected }) => {
    const { ends, ended } = trackerOf(new Map());
    const requests = { leaving: gone(), other: gone() };
    ends.begin(endBy(requests.leaving));
    ends.saved('s1', 'alice', {}, by && asRequest(requests[by]));
    if (again) ends.begin(endBy(requests.leaving));
    requests.leaving.res.end();
    expect(ended).toEqual(expected);
  });
});

describe('a session that is saved back while it ends', () => {
  const leave = (more: Partial<Leaving> = {}): Leaving =>
    Object.assign(new Leaving('s1', []), { isUpgrade: true, ...more }).close();

  const cases = [
    { by: 'a request that takes no part', saver: 'other', live: ['s1 ended', 's1 reported', 's1 saved'] },
    { by: 'the one that ends it', saver: 'actor', live: [] },
  ] as const;
  it.each(cases)('by $by has ended, or goes on: $live', async ({ saver, live }) => {
    const notes: string[] = [];
    const { ends, tasks } = trackerOf(new Map([['s1', 'alice']]), livesIn(notes));
    const requests = { actor: leave(), other: leave() };
    ends.begin(endBy(requests.actor));
    ends.saved('s1', 'alice', {}, asRequest(requests[saver]));
    ends.saved('s1', 'alice', {}, asRequest(requests.other));
    await tasks.onIdle();
    expect(notes).toEqual(live);
  });

  it('by one of two that end it, while the other has gone on, has ended', async () => {
    const notes: string[] = [];
    const { ends, tasks } = trackerOf(new Map([['s1', 'alice']]), livesIn(notes));
    const [one, other] = [leave(), leave({ sessionID: 's2' })];
    ends.begin(endBy(one, other));
    ends.saved('s1', 'alice', {}, asRequest(one));
    await tasks.onIdle();
    expect(notes).toEqual(['s1 ended', 's1 reported', 's1 saved']);
  });
});

describe('what is known of a session that has ended', () => {
  async function ended(more: Partial<PossibleEnd> = {}): Promise<TrackedEnds> {
    const tracked = trackerOf(new Map());
    tracked.ends.begin({ ...endOfJob(), ...more });
    await tracked.tasks.onIdle();
    return tracked;
  }

  it('concerns this session and this user, from the beginning of its end on', async () => {
    const { ends, tasks } = trackerOf(new Map());
    expect(ends.concerns('s1', 'alice')).toBe(false);
    ends.begin(endOfJob());
    const concerned = (): boolean[] => [
      ends.concerns('s1', 'alice'),
      ends.concerns('s2', 'alice'),
      ends.concerns('s1', 'bob'),
      ends.concerns('s', '1alice'),
    ];
    expect(concerned()).toEqual([true, false, false, false]);
    await tasks.onIdle();
    expect(concerned()).toEqual([true, false, false, false]);
  });

  it('is that it lives on, when the store has not ended it', async () => {
    const { ends, tasks } = trackerOf(new Map([['s1', 'alice']]));
    const call = new ObservedCall();
    call.end('failed');
    ends.begin(endOfJob('s1', 'alice', call));
    await tasks.onIdle();
    expect(ends.concerns('s1', 'alice')).toBe(false);
  });

  it.each([
    { name: 'came after its end', since: 1e9, known: false },
    { name: 'was under way', since: 0.5, known: true },
  ])('is over by a request that has loaded it and $name: it is known: $known', async ({ since, known }) => {
    const { ends } = await ended();
    ends.loaded('s1', 'bob', asRequest(gone({ since: 1e9 })));
    ends.loaded('s1', 'alice', asRequest(gone({ since })));
    expect(ends.hasEnded('s1', 'alice')).toBe(known);
  });

  it('stays when a request saves it whose browser had gone on, also when a row of it is found', async () => {
    const { ends, moves } = await ended();
    const other = new Leaving('s3', ['sid=s3']).close();
    moves.answered({ sid: 's1', uid: 'alice' }, asRequest(other), () => 'alice');
    ends.saved('s1', 'alice', {}, asRequest(gone()));
    ends.found('s1', 'alice');
    expect(ends.hasEnded('s1', 'alice')).toBe(true);
  });

  it.each([
    { reason: 'abandoned', known: true },
    { reason: 'destroyed', known: false },
  ] as const)('by $reason is known when a row of it is found: $known', async ({ reason, known }) => {
    const { ends } = await ended({ reason });
    ends.found('s1', 'alice');
    expect(ends.hasEnded('s1', 'alice')).toBe(known);
  });
});
