import { describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { Containment } from './containment.js';
import { ActiveRequests } from './active-requests.js';
import { sessionRequest, type SessionRequest } from './session-request.js';

class Response extends EventEmitter {
  readonly socket = undefined;
  readonly headersSent = true;
  closed = false;

  /** @param writableEnded whether the handler has ended it, before it is closed */
  constructor(
    readonly setCookies: string[] = [],
    readonly writableEnded = true,
  ) {
    super();
  }

  getHeader(): string[] {
    return this.setCookies;
  }
  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

function requestOf(sessionID: string, response: Response): SessionRequest {
  const request = sessionRequest({ sessionID, res: response, headers: { cookie: `sid=${sessionID}` } });
  if (!request) throw new TypeError('a request has a response');
  return request;
}

function activeRequests(): { active: ActiveRequests; abandoned: string[] } {
  const abandoned: string[] = [];
  const active = new ActiveRequests(new Containment(() => undefined), (sid) => abandoned.push(sid));
  return { active, abandoned };
}

describe('the user of a session', () => {
  it('is known until the last response of its requests is closed, and again with its next request', () => {
    const { active, abandoned } = activeRequests();
    const [first, second, third] = [new Response(), new Response(), new Response()];
    active.link('s1', 'alice', requestOf('s1', first));
    active.link('s1', 'alice', requestOf('s1', second));
    first.close();
    expect(active.uidOf('s1')).toBe('alice');
    expect(active.requestsOf('s1')).toHaveLength(1);
    second.close();
    expect(active.uidOf('s1')).toBeUndefined();
    expect(active.all()).toEqual([]);
    active.link('s1', 'bob', requestOf('s1', third));
    expect(active.all()).toEqual([['s1', 'bob']]);
    expect(third.listenerCount('close')).toBe(1);
    expect(abandoned).toEqual([]);
  });

  it('is not known when the response has left: the handler may go on, and end the session', () => {
    const { active } = activeRequests();
    const response = new Response();
    const request = requestOf('s1', response);
    active.link('s1', 'alice', request);
    response.close();
    expect(active.uidOf('s1')).toBeUndefined();
    expect(active.knows(request)).toBe(false);
  });

  it('is known when the client has gone, as long as the handler of its request may run', () => {
    const { active } = activeRequests();
    const response = new Response([], false);
    const request = requestOf('s1', response);
    active.link('s1', 'alice', request);
    response.close();
    expect(active.uidOf('s1')).toBe('alice');
    expect(active.knows(request)).toBe(true);
    expect(active.all()).toEqual([]);
    active.forget('s1');
    expect(active.uidOf('s1')).toBeUndefined();
    active.link('s2', 'alice', request);
    expect(active.uidOf('s2')).toBe('alice');
  });

  it('is known while a request is open, though thousands of other sessions come and go', () => {
    const { active } = activeRequests();
    active.link('open', 'alice', requestOf('open', new Response()));
    for (let n = 0; n < 5_000; n += 1) {
      const response = new Response();
      active.link(`s${n}`, 'bob', requestOf(`s${n}`, response));
      response.close();
    }
    expect(active.all()).toEqual([['open', 'alice']]);
    expect(active.requestsOf('open')).toHaveLength(1);
  });

  it('is not kept in memory when no response is open, also when the store saves the session later', () => {
    const kept = jest.spyOn(Map.prototype, 'set');
    const { active } = activeRequests();
    const response = new Response();
    active.link('s1', 'alice', requestOf('s1', response));
    const [session] = kept.mock.calls.flatMap(([sid, value]) => (sid === 's1' ? [value as unknown] : []));
    kept.mockRestore();
    expect(session).toMatchObject({ uid: 'alice' });
    response.close();
    expect(session).toEqual({ holders: [] });
    active.link('s1', 'alice', undefined);
    active.link('s1', 'alice', requestOf('s1', response)); // closed already
    expect(session).toEqual({ holders: [] });
    active.link('s1', 'alice', requestOf('s1', new Response()));
    expect(active.uidOf('s1')).toBe('alice');
  });

  it('is reported as abandoned when the response leaves the browser without the session', () => {
    const { active, abandoned } = activeRequests();
    const response = new Response(['sid=; Max-Age=0']);
    active.link('s1', 'alice', requestOf('s1', response));
    response.close();
    expect(abandoned).toEqual(['s1']);
  });

  it('is abandoned along with the request that has just logged another user in, and may give the session back', () => {
    const abandoned: unknown[] = [];
    const active = new ActiveRequests(new Containment(() => undefined), (...left) => abandoned.push(left));
    const response = new Response(['sid=; Max-Age=0']);
    const [leaving, other] = [requestOf('s1', response), requestOf('s1', new Response())];
    active.link('s1', 'alice', leaving);
    active.link('s1', 'alice', requestOf('s1', new Response()));
    active.link('s1', 'bob', other);
    response.close();
    expect(abandoned).toEqual([['s1', 'bob', leaving, other]]);
  });
});
