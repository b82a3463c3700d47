import { describe, expect, it } from '@jest/globals';
import { OpenRequests } from './active-requests.js';
import { BrowserMoves } from './browser-cookies.js';
import { Containment, type MaybePromise } from './containment.js';
import { OpenWaits, PendingTasks } from './waits.js';
import { ObservedCall } from './decide-end.js';
import type { WatchContext } from './context.js';
import { EndReporter } from './end-reporter.js';
import { EndTracker } from './end-tracker.js';
import type { SessionRequest } from './session-request.js';

const nothing = (): void => undefined;

/** Ends in an app, and the order in which things happen. The store has session s2 of alice. */
function watching({ expiry = true, isSlow = true } = {}): {
  ends: EndTracker;
  tasks: PendingTasks;
  order: string[];
  rows: Map<string, string>;
} {
  const order: string[] = [];
  const rows = new Map([['s2', 'alice']]);
  const stored = (): MaybePromise<void> => {
    const recorded = (): void => {
      order.push('the logout is recorded');
    };
    if (isSlow) return new Promise(setImmediate).then(recorded);
    recorded();
    return undefined;
  };
  const containment = new Containment(() => undefined);
  const later = (step: string) => async (): Promise<{ isFirst: boolean; isLast: boolean }> => {
    await new Promise(setImmediate);
    order.push(step);
    return { isFirst: true, isLast: true };
  };
  const liveSessions = {
    lastOnly: false,
    ...{ loaded: nothing, touched: nothing, anonymous: nothing },
    saved: () => void order.push('the session is in the registry again'),
    ended: later('the session leaves the registry'),
    reported: later('the registry knows that the end is reported'),
    forget: later('the session leaves the registry'),
  };
  const tasks = new PendingTasks();
  const context: Partial<WatchContext> = {
    reporter: new EndReporter({ onSessionEnd: stored }, containment, 10_000),
    containment,
    openRequests: new OpenRequests(containment, false),
    liveSessions: expiry ? liveSessions : undefined,
    ...{ tasks, waits: new OpenWaits(), graceMs: 10 },
  };
  const reader = {
    user: (sid: string) => rows.get(sid),
    userNow: ({ session }: SessionRequest) => (session as { user?: string } | undefined)?.user,
  };
  const moves = new BrowserMoves();
  return { ends: new EndTracker({ ...(context as WatchContext), reader, moves }), tasks, order, rows };
}

const destroyed = (): ObservedCall => {
  const call = new ObservedCall();
  call.end('done');
  return call;
};

interface Answering {
  readonly request: SessionRequest;
  /** Answers the request. Resolves when the answer has left. */
  readonly answer: () => Promise<void>;
}

/** A request whose handler has ended s1. @param now the session that it goes on with */
function requestWith(now: Pick<SessionRequest, 'session' | 'sessionID'>, order: string[]): Answering {
  let left: () => void = () => undefined;
  const hasLeft = new Promise<void>((resolve) => (left = resolve));
  const end = (): void => {
    order.push('the answer leaves');
    left();
  };
  const request = {
    ...now,
    res: { end, headersSent: true },
    isFinished: true,
    setCookies: [],
    hasLetGo: !now.session,
  };
  const answer = async (): Promise<void> => {
    request.res.end();
    await hasLeft;
  };
  return { request: request as unknown as SessionRequest, answer };
}

/** A process that dies in between leaves the end to a sweep. */
const RECORDED = [
  'the session leaves the registry',
  'the logout is recorded',
  'the registry knows that the end is reported',
];

describe('a session that a sweep would look for', () => {
  it('leaves the registry before its end is recorded, and the answer leaves when all instances know that', async () => {
    const { ends, order } = watching();
    const { request, answer } = requestWith({ session: undefined, sessionID: undefined }, order);
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: destroyed(), actors: [request] });
    await answer();
    expect(order).toEqual([...RECORDED, 'the answer leaves']);
  });

  it('leaves the registry before its end is recorded where no request takes part', async () => {
    const { ends, tasks, order } = watching();
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: destroyed() });
    await tasks.onIdle();
    expect(order).toEqual(RECORDED);
  });

  it.each([
    { then: 'and its browser stays with it', isAgain: true },
    { then: 'and its browser goes on', leaves: { session: {}, sessionID: 's2' }, isAgain: false },
    { then: 'before another user was saved', user: 'bob', isAgain: false },
  ])('is there again, $isAgain, when another request has saved it back, $then', async (now) => {
    const { leaves = { session: undefined, sessionID: 's1' }, user = 'alice' } = now;
    const { ends, tasks, order, rows } = watching();
    rows.set('s1', user);
    const leaving = requestWith(leaves, order).request;
    const saving = requestWith({ session: { user: 'alice' }, sessionID: 's1' }, order).request;
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: destroyed(), actors: [leaving] });
    ends.saved('s1', 'alice', {}, saving);
    await tasks.onIdle();
    expect(order).toEqual([...RECORDED, ...(now.isAgain ? ['the session is in the registry again'] : [])]);
  });

  it('leaves the registry before the answer leaves when the user has logged in again', async () => {
    const { ends, order } = watching();
    const { request, answer } = requestWith({ session: { user: 'alice' }, sessionID: 's2' }, order);
    ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: destroyed(), actors: [request] });
    await answer();
    expect(order).toEqual(['the session leaves the registry', 'the answer leaves']);
  });
});

describe('the answer to a logout', () => {
  it.each([
    { listener: 'takes a while', isSlow: true },
    { listener: 'is done at once', isSlow: false },
  ])('leaves after its listener has recorded it: one that $listener', async ({ isSlow }) => {
    const watch = watching({ expiry: false, isSlow });
    const { request, answer } = requestWith({ session: undefined, sessionID: undefined }, watch.order);
    watch.ends.begin({ sid: 's1', uid: 'alice', reason: 'destroyed', call: destroyed(), actors: [request] });
    await answer();
    expect(watch.order).toEqual(['the logout is recorded', 'the answer leaves']);
  });
});
