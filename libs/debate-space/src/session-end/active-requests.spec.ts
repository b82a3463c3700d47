import { describe, expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { Containment } from './containment.js';
import { ActiveRequests, OpenRequests } from './active-requests.js';
import { sessionRequest, type SessionRequest } from './session-request.js';

class Response extends EventEmitter {
  readonly socket = undefined;
  headersSent = true;
  clearSiteData: string | undefined;
  closed = false;

  /** @param writableEnded whether the handler has ended it, before it is closed */
  constructor(
    readonly setCookies: string[] = [],
    readonly writableEnded = true,
  ) {
    super();
  }

  getHeader(name: string): unknown {
    return name === 'set-cookie' ? this.setCookies : this.clearSiteData;
  }
  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

function requestOf(sessionID: string, response: Response, sent = sessionID): SessionRequest {
  const request = sessionRequest({ sessionID, res: response, headers: { cookie: `sid=${sent}` } });
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

  it('is abandoned without the other requests of the user who has left, which may be answered', () => {
    const abandoned: unknown[] = [];
    const active = new ActiveRequests(new Containment(() => undefined), (...left) => abandoned.push(left));
    const response = new Response(['sid=; Max-Age=0']);
    const leaving = requestOf('s1', response);
    for (const request of [leaving, requestOf('s1', new Response())]) active.link('s1', 'alice', request);
    response.close();
    expect(abandoned).toEqual([['s1', 'alice', leaving]]);
  });

  it('is abandoned when the response clears all cookies of the site', () => {
    const { active, abandoned } = activeRequests();
    const response = new Response();
    active.link('s1', 'alice', requestOf('s1', response));
    response.clearSiteData = '"*"';
    response.close();
    expect(abandoned).toEqual(['s1']);
  });

  it('is not abandoned when the session has no user any more', () => {
    const { active, abandoned } = activeRequests();
    const response = new Response(['sid=; Max-Age=0']);
    active.link('s1', 'alice', requestOf('s1', response));
    active.forget('s1');
    response.close();
    expect(abandoned).toEqual([]);
  });

  it('is not known any more a minute after the client has gone', () => {
    const { active } = activeRequests();
    const response = new Response([], false);
    const request = requestOf('s1', response);
    active.link('s1', 'alice', request);
    response.close();
    const left = request.abortedAt;
    const clock = jest.spyOn(Date, 'now').mockReturnValue(left + 59_999);
    expect(active.knows(request)).toBe(true);
    clock.mockReturnValue(left + 60_000);
    expect(active.knows(request)).toBe(false);
    clock.mockRestore();
  });

  it('is known by who had loaded it, when another request has ended it', () => {
    const { active } = activeRequests();
    const [one, other, stranger] = [new Response(), new Response(), new Response()].map((response) =>
      requestOf('s1', response),
    ) as [SessionRequest, SessionRequest, SessionRequest];
    active.link('s1', 'alice', one);
    active.link('s1', 'bob', other);
    active.forget('s1');
    expect(active.uidOf('s1')).toBeUndefined();
    expect(active.uidLoadedBy('s1', [stranger, one])).toBe('alice');
    expect(active.uidLoadedBy('s1', [stranger])).toBeUndefined();
    expect(active.uidLoadedBy('s2', [one])).toBeUndefined();
    active.link('s1', 'carol', one);
    expect([active.uidOf('s1'), active.uidLoadedBy('s1', [one])]).toEqual(['carol', 'carol']);
    expect(active.requestsOf('s1')).toEqual([one, other]);
    expect(active.requestsOf('s2')).toEqual([]);
  });
});

describe('the requests that are not answered', () => {
  const open = (sid: string): { response: Response; request: SessionRequest } => {
    const response = Object.assign(new Response(), { headersSent: false });
    return { response, request: requestOf(sid, response) };
  };

  it('of a user are those of all their sessions', () => {
    const { active } = activeRequests();
    const [one, other, ofBob] = [open('s1'), open('s2'), open('s3')];
    active.link('s1', 'alice', one.request);
    active.link('s2', 'alice', other.request);
    active.link('s3', 'bob', ofBob.request);
    expect(active.requestsOfUser('alice')).toEqual([one.request, other.request]);
    expect(active.unanswered()).toEqual([one.request, other.request, ofBob.request]);
    one.response.headersSent = true;
    other.response.close();
    expect(active.requestsOfUser('alice')).toEqual([]);
    expect(active.unanswered()).toEqual([ofBob.request]);
  });

  it('are also those without a session, until their head has left or they are closed', () => {
    const requests = new OpenRequests(new Containment(() => undefined), false);
    const [one, other, closed] = [open('s1'), open('s2'), open('s3')];
    closed.response.close();
    for (const { request } of [one, other, closed]) requests.add(request);
    expect(requests.unanswered()).toEqual([one.request, other.request]);
    one.response.headersSent = true;
    other.response.close();
    expect(requests.unanswered()).toEqual([]);
  });

  it.each([
    { countsAll: false, counted: ['POST', 'DELETE', undefined] },
    { countsAll: true, counted: ['POST', 'DELETE', undefined, 'GET', 'HEAD', 'OPTIONS'] },
  ])('count by their method, where reads count ($countsAll): $counted', ({ countsAll, counted }) => {
    const requests = new OpenRequests(new Containment(() => undefined), countsAll);
    const methods = ['POST', 'DELETE', undefined, 'GET', 'HEAD', 'OPTIONS'];
    expect(methods.filter((method) => requests.counts(method))).toEqual(counted);
  });
});

describe('a request that goes on with another session than its browser has sent', () => {
  const renewing = (response: Response, sid = 's2'): SessionRequest => requestOf(sid, response, 's1');

  it('has renewed the session for the others that are under way', () => {
    const { active } = activeRequests();
    const [response, other] = [new Response(['sid=s2']), new Response(['sid=; Max-Age=0'])];
    active.link('s1', 'alice', requestOf('s1', other));
    active.link('s2', 'alice', renewing(new Response()));
    active.follow(renewing(response), 's1');
    response.close();
    expect(active.moves.after('s1')).toMatchObject({ sid: 's2', uid: 'alice' });
  });

  it('is of no interest where there are none', () => {
    const { active } = activeRequests();
    const response = new Response(['sid=s2']);
    active.follow(renewing(response), 's1');
    expect(response.listenerCount('close')).toBe(0);
  });

  it('leaves the session that another one has given the browser before', () => {
    const { active, abandoned } = activeRequests();
    const [first, second, third] = [new Response(['sid=s2']), new Response(), new Response(['sid=s3'])];
    active.link('s1', 'alice', renewing(first));
    active.link('s2', 'alice', requestOf('s2', second));
    first.close();
    expect(abandoned).toEqual(['s1']);
    active.follow(renewing(third, 's3'), 's1');
    third.close();
    expect(abandoned).toEqual(['s1', 's2']);
  });
});
