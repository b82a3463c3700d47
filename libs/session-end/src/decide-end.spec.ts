import { describe, expect, it } from '@jest/globals';
import { BrowserMoves } from './browser-moves.js';
import { Containment } from './containment.js';
import { OpenWaits } from './waits.js';
import { hasEnded, isCertain, ObservedCall, type DecisionContext } from './decide-end.js';
import type { CloseListener, SessionRequest } from './session-request.js';

/** A request whose response the test closes. */
class Leaving {
  readonly hasLetGo = true;
  readonly isAnswered = true;
  readonly isCommitted = false;
  readonly cookieHeader = 'sid=s1';
  readonly native = {};
  isFinished = false;
  answeredAt = 0;
  #listener: () => void = () => undefined;

  constructor(
    readonly sessionID: string,
    readonly setCookies: readonly string[],
  ) {}

  get isClosed(): boolean {
    return this.isFinished;
  }
  onClose(listener: CloseListener): boolean {
    this.#listener = () => {
      listener.closed(this as never);
    };
    return true;
  }
  close(): void {
    this.isFinished = true;
    this.answeredAt = 1;
    this.#listener();
  }
}

it('the session of a user that another request renews while the store is read for the first has not ended', async () => {
  const [first, other] = [new Leaving('s1', ['theme=dark']), new Leaving('s2', ['sid=s2'])];
  const rows = new Map([['s2', 'alice']]);
  const user = async (sid: string): Promise<string | undefined> => {
    if (!other.isFinished) other.close(); // while the store answers
    await new Promise(setImmediate);
    return rows.get(sid);
  };
  const context: DecisionContext = {
    graceMs: 1_000,
    waits: new OpenWaits(),
    containment: new Containment(() => undefined),
    moves: new BrowserMoves(),
    reader: { user, userNow: () => undefined },
  };
  const destroyed = new ObservedCall();
  destroyed.end('done');
  const actors = [first, other] as unknown as SessionRequest[];
  const candidate = { sid: 's1', uid: 'alice', actors, holders: [] };
  const saves = { savedBack: undefined, isKept: false };
  const verdict = hasEnded({ ...candidate, ...saves, calls: [destroyed] }, context);
  await new Promise(setImmediate);
  first.close();
  expect(await verdict).toBe(false);
});

it('the session of a browser that goes on with another one has not ended when that one ends, too', async () => {
  const renewing = new Leaving('s2', ['sid=s2']);
  renewing.close();
  const reads: string[] = [];
  // By the second time, the new session has ended as well, and is reported for itself.
  const user = (sid: string): string | undefined =>
    reads.push(sid) === 1 && sid === 's2' ? 'alice' : undefined;
  const context: DecisionContext = {
    graceMs: 1_000,
    waits: new OpenWaits(),
    containment: new Containment(() => undefined),
    moves: new BrowserMoves(),
    reader: { user, userNow: () => undefined },
  };
  const saysNothing = new ObservedCall();
  saysNothing.end('silent');
  const actors = [renewing] as unknown as SessionRequest[];
  const candidate = { sid: 's1', uid: 'alice', actors, holders: [] };
  const saves = { savedBack: undefined, isKept: false };
  expect(await hasEnded({ ...candidate, ...saves, calls: [saysNothing] }, context)).toBe(false);
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
    const request = new Leaving(left, [`sid=${left}`]);
    request.close();
    const destroyed = new ObservedCall();
    destroyed.end('done');
    const context: DecisionContext = {
      graceMs: 1_000,
      waits: new OpenWaits(),
      containment: new Containment(() => undefined),
      moves: new BrowserMoves(),
      reader: { user: () => Promise.reject(new Error('the store does not answer')), userNow: () => user },
    };
    const actors = [request] as unknown as SessionRequest[];
    const candidate = { sid: 's1', uid: 'alice', actors, holders: [] };
    const saves = { savedBack: undefined, isKept: false };
    expect(await hasEnded({ ...candidate, ...saves, calls: [destroyed] }, context)).toBe(ended);
  });
});

it('the end of a session is not certain by the answer of one request while another one is renewing the session', () => {
  const requestOf = (sessionID: string): SessionRequest => new Leaving(sessionID, []) as never;
  const [leaving, renewing] = [requestOf('s1'), requestOf('s2')];
  const destroyed = new ObservedCall();
  destroyed.end('done');
  const candidate = { sid: 's1', uid: 'alice', actors: [leaving], calls: [destroyed] };
  const saves = { savedBack: undefined, isKept: false };
  const isSure = (holders: SessionRequest[]): boolean =>
    isCertain({ ...candidate, ...saves, holders }, leaving, 'bob');
  expect(isSure([])).toBe(true);
  expect(isSure([renewing])).toBe(false);
});
