import { describe, expect, it, jest } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { done, trackerOf } from 'debate-space-fixtures/tracked-ends.js';
import { ObservedCall } from './decide-end.js';
import type { WatchContext } from './context.js';
import type { SessionRequest } from './session-request.js';

describe('the ends of sessions', () => {
  it('are one where they overlap in one session', async () => {
    const { ends, tasks, ended } = trackerOf(new Map());
    const slow = new ObservedCall();
    ends.begin({ sid: 's1', uid: 'alice', reason: 'user-removed', call: slow });
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: done() });
    slow.end('done');
    await tasks.onIdle();
    expect(ended).toEqual(['alice']);
  });

  it('that are decided are known, until the session is saved with its user again', async () => {
    const { ends, tasks } = trackerOf(new Map());
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: done() });
    expect(ends.hasEnded('s1', 'alice')).toBe(false);
    await tasks.onIdle();
    expect(ends.hasEnded('s1', 'alice')).toBe(true);
    expect(ends.hasEnded('s1', 'bob')).toBe(false);
    ends.saved('s1', 'alice', {}, undefined);
    expect(ends.hasEnded('s1', 'alice')).toBe(false);
  });

  it('are as many as the user logs in and out over one socket, which is one request', async () => {
    const { ends, tasks, ended } = trackerOf(new Map());
    const socket = {
      res: {},
      isFinished: true,
      isUpgrade: true,
      sessionID: 's1',
      setCookies: [],
    } as unknown as SessionRequest;
    for (const login of [undefined, socket]) {
      ends.begin({ sid: 's1', uid: 'alice', reason: 'user-removed', call: done(), actors: [socket] });
      await tasks.onIdle();
      ends.saved('s1', 'alice', {}, login); // by HTTP, or over the socket
    }
    ends.begin({ sid: 's1', uid: 'alice', reason: 'user-removed', call: done(), actors: [socket] });
    await tasks.onIdle();
    expect(ended).toEqual(['alice', 'alice', 'alice']);
  });

  describe('by a handler that does not answer', () => {
    const users = [
      { name: 'is recorded after five minutes', user: undefined, ended: ['alice'] },
      { name: 'is not, while the request has a session of the same user', user: 'alice', ended: [] },
    ];
    it.each(users)('$name', ({ user, ended: expected }) => {
      jest.useFakeTimers();
      const { ends, ended } = trackerOf(new Map());
      const response = new ServerResponse(new IncomingMessage(new Socket()));
      const hanging = {
        res: response,
        isFinished: false,
        onClose: () => true,
        session: user,
      } as unknown as SessionRequest;
      ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: done(), actors: [hanging] });
      jest.advanceTimersByTime(4 * 60_000);
      expect(ended).toEqual([]);
      jest.advanceTimersByTime(2 * 60_000);
      expect(ended).toEqual(expected);
      jest.useRealTimers();
    });
  });

  const suspects = [
    { name: 'logs the user in, whose new session is not saved yet', sessionID: 's2', ended: [] },
    { name: 'only has the session that has ended', sessionID: 's1', ended: ['alice'] },
    { name: 'logs another user in', sessionID: 's2', session: 'bob', ended: ['alice'] },
    { name: 'has no session yet', sessionID: undefined, ended: ['alice'] },
    { name: 'logs the user in where they had left before it came', sessionID: 's0', since: 1, ended: [] },
    { name: 'has a session that has ended since it came', sessionID: 's0', since: -1, ended: ['alice'] },
  ];
  it.each(suspects)(
    "are reported for $ended under 'last' by a request that $name",
    async ({ sessionID, session = 'alice', since = 0, ended: expected }) => {
      const liveSessions = {
        lastOnly: true,
        ended: () => Promise.resolve({ isFirst: true, isLast: true }),
        reported: () => Promise.resolve(),
      } as unknown as WatchContext['liveSessions'];
      const { ends, tasks, ended } = trackerOf(new Map(), { liveSessions });
      const res = new ServerResponse(new IncomingMessage(new Socket()));
      ends.begin({ sid: 's0', uid: 'alice', reason: 'user-replaced', call: done() });
      await tasks.onIdle();
      ended.length = 0;
      const request = {
        ...{ res, session, sessionID, onClose: () => true },
        since: since * 1e9 || 0.5,
      } as unknown as SessionRequest;
      const end = { sid: 's1', uid: 'alice', reason: 'destroyed', call: done() } as const;
      ends.begin(end, { requests: [request], areOfUser: false });
      res.end();
      await tasks.onIdle();
      expect(ended).toEqual(expected);
    },
  );

  const logins = [
    { name: 'has logged its user in', session: 'alice', ended: [] },
    { name: 'has no user yet', session: undefined, ended: ['alice'] },
  ];
  it.each(logins)(
    'are reported before the answer for $ended while another request of the browser $name',
    async ({ session, ended: expected }) => {
      const { ends, ended, openRequests } = trackerOf(new Map());
      const requestOf = (more: object): SessionRequest => {
        const res = new ServerResponse(new IncomingMessage(new Socket()));
        return { res, onClose: () => true, cookieHeader: 'sid=s1', setCookies: [], ...more } as never;
      };
      const leaving = requestOf({ sessionID: 's2', session: 'bob' });
      openRequests.add(requestOf({ sessionID: 's3', session }));
      ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: done(), actors: [leaving] });
      leaving.res.end();
      await new Promise(setImmediate);
      expect(ended).toEqual(expected);
    },
  );

  const finds = [
    { name: 'again, as its browser stays with it', sessionID: 's1', kind: 'actors', known: false },
    { name: 'for good, as its browser has gone on', sessionID: 's2', kind: 'actors', known: true },
    { name: 'for good, as a request that had it has gone on', sessionID: 's2', kind: 'holders', known: true },
  ];
  it.each(finds)('are over, when the store still has the session, $name', async (now) => {
    const { ends, tasks } = trackerOf(new Map());
    const party = { res: {}, isUpgrade: true, isFinished: true, setCookies: [], sessionID: now.sessionID };
    const parties = { [now.kind]: [party as unknown as SessionRequest] };
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: done(), ...parties });
    await tasks.onIdle();
    expect(ends.hasEnded('s1', 'alice')).toBe(true);
    ends.found('s1', 'alice');
    expect(ends.hasEnded('s1', 'alice')).toBe(now.known);
  });

  const left = [
    { name: 'is known to be left', sessionID: 's2', known: true },
    { name: 'is not, where its browser stays with it', sessionID: 's1', known: false },
  ];
  it.each(left)('are none where the user lives on, and the session $name', async ({ sessionID, known }) => {
    const rows = { s1: 'alice', s2: 'alice' };
    const forgotten: string[] = [];
    const forget = (sid: string): Promise<unknown> => Promise.resolve(forgotten.push(sid));
    const liveSessions = { forget } as unknown as WatchContext['liveSessions'];
    const { ends, tasks, ended } = trackerOf(new Map(Object.entries(rows)), { liveSessions });
    const party = { res: {}, isUpgrade: true, isFinished: true, setCookies: [`sid=${sessionID}`], sessionID };
    const actors = [party as unknown as SessionRequest];
    ends.begin({ sid: 's1', uid: 'alice', reason: 'abandoned', call: done(), actors });
    await tasks.onIdle();
    expect(ended).toEqual([]);
    expect(ends.hasEnded('s1', 'alice')).toBe(known);
    expect(forgotten).toEqual(known ? ['s1'] : []);
  });

  const failed = [
    { name: 'and left the session', stored: new Map([['s1', 'alice']]), ended: [] },
    { name: 'after it had its effect', stored: new Map(), ended: ['alice'] },
  ];
  it.each(failed)(
    'by a call that failed $name are reported for $ended',
    async ({ stored, ended: expected }) => {
      const { ends, tasks, ended } = trackerOf(stored);
      const call = new ObservedCall();
      ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: call });
      call.end('failed');
      await tasks.onIdle();
      expect(ended).toEqual(expected);
    },
  );
});
