import { describe, expect, it } from '@jest/globals';
import { cookiesAfter, cookiesSent, cookieValue, NOT_CHANGED } from './browser-cookies.js';
import { sessionLeftBy, sessionLeftByOne } from './browser-cookies.js';
import type { SessionRequest } from './session-request.js';

const PAST = 'Thu, 01 Jan 1970 00:00:00 GMT';
const FUTURE = 'Fri, 31 Dec 2100 00:00:00 GMT';

describe('the cookies that a browser has after a response', () => {
  it.each<{ name: string; set: string[]; after: Record<string, string> }>([
    {
      name: 'are others at another path',
      set: ['sid=; Max-Age=0; Path=/legacy', 'theme=light; Path=/app/news'],
      after: { sid: 'a b', theme: 'dark' },
    },
    {
      name: 'change at the path that was requested, and above',
      set: ['sid=; Max-Age=0; Path=/app', 'theme=light; Path=/app/page'],
      after: { theme: 'light' },
    },
    {
      name: 'change by a cookie of the root',
      set: ['theme=light; Path=/'],
      after: { sid: 'a b', theme: 'light' },
    },
    {
      name: 'stay by a cookie of a path that only begins alike',
      set: ['theme=light; Path=/ap'],
      after: { sid: 'a b', theme: 'dark' },
    },
    {
      name: 'change by a cookie of a path that is none',
      set: ['theme=light; Path=x'],
      after: { sid: 'a b', theme: 'light' },
    },
    {
      name: 'change with an Expires of the future',
      set: [`sid=x; Expires=${FUTURE}`],
      after: { sid: 'x', theme: 'dark' },
    },
    { name: 'stay as they are', set: [], after: { sid: 'a b', theme: 'dark' } },
    { name: 'change', set: ['sid=c%20d; Path=/; HttpOnly'], after: { sid: 'c d', theme: 'dark' } },
    { name: 'grow', set: ['basket=3'], after: { sid: 'a b', theme: 'dark', basket: '3' } },
    { name: 'go with an Expires of the past', set: [`sid=; Expires=${PAST}`], after: { theme: 'dark' } },
    { name: 'go with a Max-Age of nothing', set: ['sid=x; Max-Age=0'], after: { theme: 'dark' } },
    {
      name: 'stay when Max-Age says so',
      set: [`sid=x; Max-Age=60; Expires=${PAST}`],
      after: { sid: 'x', theme: 'dark' },
    },
    {
      name: 'go when Max-Age says so',
      set: [`sid=x; Max-Age=0; Expires=${FUTURE}`],
      after: { theme: 'dark' },
    },
    {
      name: 'are what the last header says',
      set: ['sid=; Max-Age=0', 'sid=x'],
      after: { sid: 'x', theme: 'dark' },
    },
    {
      name: 'may have the names of what objects inherit',
      set: ['constructor=x', '__proto__=y'],
      after: { sid: 'a b', theme: 'dark', constructor: 'x', ['__proto__']: 'y' },
    },
  ])('$name', ({ set, after }) => {
    const cookies = cookiesAfter(
      cookiesSent('sid=a%20b; theme=dark'),
      { setCookies: set, clearsCookies: false },
      '/app/page',
    );
    expect(Object.entries(cookies).toSorted()).toEqual(Object.entries(after).toSorted());
  });

  it('are none when Clear-Site-Data has cleared them, also those that were set', () => {
    const changes = { setCookies: ['basket=3'], clearsCookies: true };
    expect(Object.keys(cookiesAfter(cookiesSent('sid=a'), changes, '/'))).toEqual([]);
  });

  it('are none without a header', () => {
    expect(cookieValue(cookiesSent(undefined), 'toString')).toBeUndefined();
  });
});

describe('the value of a session cookie', () => {
  it.each([
    { cookies: { session: 'whole' }, value: 'whole' },
    { cookies: { 'session.0': 'one', 'session.1': 'two', 'session.3': 'four' }, value: 'onetwo' },
    { cookies: { 'session.1': 'two' }, value: undefined },
    { cookies: { session: '' }, value: undefined },
    { cookies: {}, value: undefined },
  ])('in $cookies is $value', ({ cookies, value }) => {
    expect(cookieValue(cookies, 'session')).toBe(value);
  });
});

describe('the session that a response leaves a browser with', () => {
  const leftBy = (setCookie: string, cookie: object): unknown => {
    const native = { url: '/app/page', headers: { host: 'app.example.org:8443' } };
    const request = { native, session: { cookie }, sessionID: 's1', cookieHeader: 'sid=s1' };
    return sessionLeftByOne({ ...request, isAnswered: true, setCookies: [setCookie] } as never, 's1');
  };
  const own = { path: '/' };
  const ofDomain = { path: '/', domain: '.Example.org' };

  it.each([
    { name: 'the path of the session', clears: 'sid=; Max-Age=0; Path=/app', cookie: { path: '/app' } },
    { name: 'no path', clears: 'sid=; Max-Age=0', cookie: { path: '/app' } },
    { name: 'any path, and the session names none', clears: 'sid=; Max-Age=0; Path=/', cookie: {} },
    { name: 'the domain of the session', clears: 'sid=; Max-Age=0; Domain=example.org', cookie: ofDomain },
    { name: 'the host as its domain', clears: 'sid=; Max-Age=0; Domain=app.example.org', cookie: own },
    { name: 'a domain that is not above the host', clears: 'sid=; Max-Age=0; Domain=other.org', cookie: own },
  ])('is none when it clears the cookie of $name', ({ clears, cookie }) => {
    expect(leftBy(clears, cookie)).toBeUndefined();
  });

  it.each([
    { name: 'another path', clears: 'sid=; Max-Age=0; Path=/', cookie: { path: '/app' } },
    { name: 'a domain above the host', clears: 'sid=; Max-Age=0; Domain=example.org', cookie: own },
    { name: 'the host, and the session has a domain', clears: 'sid=; Max-Age=0', cookie: ofDomain },
    { name: 'another domain', clears: 'sid=; Max-Age=0; Domain=app.example.org', cookie: ofDomain },
  ])('is the same when it clears a cookie of that name of $name', ({ clears, cookie }) => {
    expect(leftBy(clears, cookie)).toBe(NOT_CHANGED);
  });

  const leftWith = (cookieHeader: string, ...setCookies: string[]): unknown => {
    const request = { native: { url: '/' }, sessionID: 's1', cookieHeader, isAnswered: true, setCookies };
    return sessionLeftByOne(request as never, 's1');
  };

  it.each([
    { name: 'of express-session', cookies: 'sid=s%3As1.signature; last=s1' },
    { name: 'of @fastify/session', cookies: 'sid=s1.signature; last=s1' },
    { name: 'without a signature', cookies: 'sid=s1; last=id:s1' },
  ])('is none when it clears the cookie $name, and another cookie names the session', ({ cookies }) => {
    expect(leftWith(cookies, 'sid=; Max-Age=0')).toBeUndefined();
    expect(leftWith(cookies, 'sid=; Max-Age=0', 'last=id:s1')).toBeUndefined();
  });

  it('is the same when it clears a cookie that only names the session', () => {
    expect(leftWith('sid=s%3As1.signature; last=s1', 'last=; Max-Age=0')).toBe(NOT_CHANGED);
  });

  it('is none when it clears the only cookie that names the session', () => {
    expect(leftWith('sid=id:s1', 'sid=; Max-Age=0')).toBeUndefined();
  });

  it('is none when Clear-Site-Data clears the cookies, although the session is set again', () => {
    const setCookies = ['sid=s1'];
    const request = { sessionID: 's1', cookieHeader: 'sid=s1', isAnswered: true, setCookies };
    expect(sessionLeftByOne({ ...request, clearsCookies: true } as never, 's1')).toBeUndefined();
  });

  /** By a request that has sent the session s1. */
  const answerOf = (
    sessionID: string | undefined,
    setCookies: string[],
    more: object = {},
  ): SessionRequest => {
    const request = { native: { url: '/' }, sessionID, cookieHeader: 'sid=s1', isAnswered: true, setCookies };
    return { ...request, ...more } as unknown as SessionRequest;
  };
  const EXPIRES = `sid=s1; expires = ${FUTURE}`;

  it.each([
    { name: 'the same by a rolling cookie', id: 's1', set: ['sid=s1'], left: 's1' },
    { name: 'the same by a rolling cookie with an end', id: 's1', set: [EXPIRES], left: 's1' },
    { name: 'the same by one of no white space', id: 's1', set: ['sid=s1;MAX-AGE=60'], left: 's1' },
    {
      name: 'none by one with an end in the past',
      id: 's1',
      set: [`sid=s1;Expires=${PAST}`],
      left: undefined,
    },
    { name: 'none by one with an age of nothing', id: 's1', set: ['sid=s1; max-age =0'], left: undefined },
    {
      name: 'none by a rolling cookie that is cleared again',
      id: 's1',
      set: ['sid=s1', 'sid='],
      left: undefined,
    },
    { name: 'not changed by another cookie', id: 's1', set: ['theme=dark'], left: NOT_CHANGED },
    { name: 'not changed without cookies', id: 's2', set: [], left: NOT_CHANGED },
    { name: 'the new one', id: 's2', set: ['sid=s2'], left: 's2' },
    { name: 'the old one where the new one is not set', id: 's2', set: ['sid=s1'], left: 's1' },
    {
      name: 'none where its cookie is cleared',
      id: 's2',
      set: ['sid=; Max-Age=0'],
      left: undefined,
    },
    { name: 'none for a request without a session', id: undefined, set: ['sid='], left: undefined },
  ])('is $name', ({ id, set, left }) => {
    expect(sessionLeftByOne(answerOf(id, set), 's1')).toBe(left);
  });

  it('is that of the request where cookies do not show it, or where none was sent', () => {
    const hidden = answerOf('s2', ['sid=encrypted'], { cookieHeader: 'sid=secret' });
    expect(sessionLeftByOne(hidden, 's1')).toBe('s2');
    expect(sessionLeftByOne(answerOf('s2', [], { isAnswered: false }), undefined)).toBe('s2');
  });

  it('is not changed by an answer that has not reached the browser', () => {
    const lost = answerOf('s2', ['sid=s2'], { isAnswered: false });
    expect(sessionLeftByOne(lost, 's1')).toBe(NOT_CHANGED);
  });

  it('is that of the answer that has left last and has changed it', () => {
    const renewal = answerOf('s2', ['sid=s2'], { answeredAt: 2 });
    const early = answerOf('s3', ['sid=s3'], { answeredAt: 1 });
    const other = answerOf('s1', ['theme=dark'], { answeredAt: 3 });
    expect(sessionLeftBy([renewal, early, other], 's1')).toBe('s2');
    expect(sessionLeftBy([early, other, renewal], 's1')).toBe('s2');
    expect(sessionLeftBy([other], 's1')).toBe('s1');
    expect(sessionLeftBy([], 's1')).toBe('s1');
  });

  it.each([
    { name: 'the host is not known', headers: {}, domain: 'example.org' },
    { name: 'nothing is known of the request', headers: undefined, domain: 'example.org' },
    { name: 'the domain is empty', headers: { host: 'a.example.org' }, domain: '' },
  ])('is none when it clears a cookie of a domain, and $name', ({ headers, domain }) => {
    const more = { native: { url: '/', headers }, session: { cookie: { path: '/' } } };
    const request = answerOf('s1', [`sid=; Max-Age=0; Domain=${domain}`], more);
    expect(sessionLeftByOne(request, 's1')).toBeUndefined();
  });
});
