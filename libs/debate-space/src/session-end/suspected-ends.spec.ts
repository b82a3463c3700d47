import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { Containment } from './containment.js';
import { OpenWaits } from './waits.js';
import type { WatchContext } from './context.js';
import { sessionRequest, type SessionRequest } from './session-request.js';
import { SuspectedEnds } from './suspected-ends.js';

/** A response without a connection. */
class Response extends EventEmitter {
  readonly socket = undefined;
  headersSent = false;
  writableEnded = false;
  closed = false;

  write(): boolean {
    return true;
  }
  end(): void {
    this.headersSent = this.writableEnded = true;
  }
  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

function suspect(): { readonly response: Response; readonly request: SessionRequest } {
  const response = new Response();
  const request = sessionRequest({ res: response, headers: {} });
  if (!request) throw new TypeError('a request has a response');
  return { response, request };
}

function suspected(lastOnly: boolean) {
  const judged: string[][] = [];
  const waits = new OpenWaits();
  const context = {
    ...{ waits, graceMs: 500, containment: new Containment(() => undefined) },
    ...{ reporter: { answerTimeoutMs: 10_000 }, liveSessions: lastOnly ? { lastOnly } : undefined },
  } as unknown as WatchContext;
  const ends = new SuspectedEnds<{ uid: string; sid: string }>(context, (group) => {
    judged.push(group.map(({ sid }) => sid));
  });
  const add = (sid: string, requests: SessionRequest[], areOfUser = false): unknown =>
    ends.add({ uid: 'alice', sid }, { requests, areOfUser });
  return { add, judged, waits };
}

describe('ends that no request is known to have caused', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('are judged together when one of the suspects is answered', () => {
    const { add, judged } = suspected(false);
    const [one, other] = [suspect(), suspect()];
    add('s1', [one.request, other.request]);
    add('s2', [one.request, other.request]);
    expect(judged).toEqual([]);
    one.response.end();
    expect(judged).toEqual([['s1', 's2']]);
    other.response.end();
    jest.runAllTimers();
    expect(judged).toHaveLength(1);
  });

  it('are judged when all suspects are answered, where each may log the user in', () => {
    const { add, judged } = suspected(true);
    const [one, other] = [suspect(), suspect()];
    add('s1', [one.request, other.request]);
    one.response.end();
    expect(judged).toEqual([]);
    other.response.close(); // its client has gone away
    expect(judged).toEqual([['s1']]);
  });

  it('of different users are judged apart where a request of the user is a suspect', () => {
    const { add, judged } = suspected(false);
    const [own, other] = [suspect(), suspect()];
    add('s1', [own.request], true);
    add('s2', [other.request]);
    other.response.end();
    expect(judged).toEqual([['s2']]);
    own.response.end();
    expect(judged).toEqual([['s2'], ['s1']]);
  });

  const limits = [
    { name: 'half a second, session.graceMs', lastOnly: false, ms: 500 },
    { name: "five seconds under 'last'", lastOnly: true, ms: 5_000 },
  ];
  it.each(limits)('wait no longer than $name', ({ lastOnly, ms }) => {
    const { add, judged } = suspected(lastOnly);
    add('s1', [suspect().request]);
    jest.advanceTimersByTime(ms - 1);
    expect(judged).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(judged).toEqual([['s1']]);
  });

  it('are judged by a shutdown', () => {
    const { add, judged, waits } = suspected(true);
    add('s1', [suspect().request]);
    waits.close();
    expect(judged).toEqual([['s1']]);
  });
});
