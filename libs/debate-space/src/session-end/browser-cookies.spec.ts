import { describe, expect, it } from '@jest/globals';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import {
  changedCookies,
  cookieChangesOf,
  cookiesAfter,
  cookiesSent,
  cookieValue,
  idIn,
  losesSession,
  proofIn,
  proofOf,
  type CookieChanges,
} from './browser-cookies.js';
import { RequestScope } from './request-scope.js';

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
      set: ['sid=; Max-Age=0; Path=/app', 'theme=light; Path=/'],
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
      set: ['sid=x; Path=x'],
      after: { sid: 'x', theme: 'dark' },
    },
    {
      name: 'change with an Expires of the future',
      set: [`sid=x; Expires=${FUTURE}`],
      after: { sid: 'x', theme: 'dark' },
    },
    { name: 'stay as they are', set: [], after: { sid: 'a b', theme: 'dark' } },
    { name: 'change', set: ['sid=c%20d; Path=/app; HttpOnly'], after: { sid: 'c d', theme: 'dark' } },
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
      { path: '/app/page' },
      (name) => ({ path: name === 'sid' ? '/app' : '/' }),
    );
    expect(Object.entries(cookies).toSorted()).toEqual(Object.entries(after).toSorted());
  });

  it('are none when Clear-Site-Data has cleared them, also those that were set', () => {
    const changes = { setCookies: ['basket=3'], clearsCookies: true };
    expect(Object.keys(cookiesAfter(cookiesSent('sid=a'), changes, { path: '/' }, () => undefined))).toEqual(
      [],
    );
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

describe('a session', () => {
  const request = (sent: string, cookie: object = {}, setCookie?: string | readonly string[]): RequestScope =>
    new RequestScope(
      { url: '/app/page', session: { cookie } },
      { headers: { cookie: sent, host: 'app.example.org:8443' } } as IncomingMessage,
      {
        headersSent: true,
        getHeader: (name: string) => (name === 'set-cookie' ? setCookie : undefined),
      } as never,
    );
  const isLost = (setCookie: string | readonly string[], cookie: object, sent = 'sid=s%3As1.c2ln'): boolean =>
    losesSession('s1', request(sent, cookie, setCookie));
  const own = { path: '/' };
  const ofDomain = { path: '/', domain: '.Example.org' };

  it.each([
    { name: 'the path of the session', clears: 'sid=; Max-Age=0; Path=/app', cookie: { path: '/app' } },
    { name: 'no path', clears: 'sid=; Max-Age=0', cookie: { path: '/app' } },
    { name: 'no path, which a proxy has stripped', clears: 'sid=; Max-Age=0', cookie: { path: '/shop' } },
    { name: 'any path, and the session names none', clears: 'sid=; Max-Age=0; Path=/', cookie: {} },
    {
      name: 'the domain of the session',
      clears: 'sid=; Max-Age=0; Path=/; Domain=example.org',
      cookie: ofDomain,
    },
    {
      name: 'the host as its domain',
      clears: 'sid=; Max-Age=0; Path=/; Domain=app.example.org',
      cookie: own,
    },
    {
      name: 'a domain that is not above the host',
      clears: 'sid=; Max-Age=0; Path=/; Domain=other.org',
      cookie: own,
    },
  ])('is lost when its cookie is cleared for $name', ({ clears, cookie }) => {
    expect(isLost(clears, cookie)).toBe(true);
  });

  it.each([
    { name: 'another path', clears: 'sid=; Max-Age=0; Path=/', cookie: { path: '/app' } },
    { name: 'a domain above the host', clears: 'sid=; Max-Age=0; Path=/; Domain=example.org', cookie: own },
    { name: 'the host, and the session has a domain', clears: 'sid=; Max-Age=0; Path=/', cookie: ofDomain },
    { name: 'another domain', clears: 'sid=; Max-Age=0; Path=/; Domain=app.example.org', cookie: ofDomain },
  ])('is kept when a cookie of its name is cleared for $name', ({ clears, cookie }) => {
    expect(isLost(clears, cookie)).toBe(false);
  });

  it.each([
    { name: 'that repeats the id', sent: 'sid=s%3As1.c2ln; last=s1' },
    { name: 'that has the id inside', sent: 'sid=s1; last=of-s1-today' },
  ])('is kept when another cookie is cleared $name', ({ sent }) => {
    expect(isLost('last=; Max-Age=0', own, sent)).toBe(false);
  });

  it('is lost when the cookie that has its id inside is cleared', () => {
    expect(isLost('sid=; Max-Age=0; Path=/', own, 'sid=prefix-s1')).toBe(true);
  });

  it.each([
    { name: 'sets it at another path', set: ['sid=s%3As1.c2ln; Path=/app', 'sid=; Max-Age=0; Path=/'] },
    { name: 'clears it, and sets it again', set: ['sid=; Max-Age=0; Path=/', 'sid=s%3As1.c2ln; Path=/'] },
    { name: 'clears it at the default path, which is not its own', set: ['sid=; Max-Age=0'] },
  ])('is kept when an answer $name', ({ set }) => {
    expect(isLost(set, own)).toBe(false);
  });

  it.each([
    ['sid=s%3As1.c2ln', 's:s1.c2ln'],
    ['sid=s1.c2ln', 's1.c2ln'],
    ['sid=s1', 's1'],
  ])('of a request with the cookie %s is shown by its value', (sent, from) => {
    const changed = (set?: string): unknown => changedCookies(request(sent, own, set), own);
    expect(idIn(from)).toBe('s1');
    const proof = proofOf(['sid'], { sid: from });
    expect(proofIn(sent, 's1')).toBe(proof);
    expect(changed('sid=; Max-Age=0; Path=/')).toEqual([{ from, proof, to: undefined }]);
    expect(changed('sid=s%3As2.c2ln; Path=/')).toEqual([{ from, proof, to: 's:s2.c2ln' }]);
    expect(changed('sid=; Max-Age=0; Path=/app')).toEqual([]);
    expect(changed('theme=dark; Path=/')).toEqual([]);
    expect(changed()).toEqual([]);
  });
});

const responseOf = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()));
const NOTHING = { setCookies: [], clearsCookies: false };

describe('the cookies that a head changes', () => {
  it.each<{ name: string; headers: Record<string, string | string[]>; changes: CookieChanges }>([
    { name: 'none', headers: { 'X-Cookie': 'set-cookie: a=1' }, changes: NOTHING },
    {
      name: 'two that are set, in any case',
      headers: { 'SET-cookie': ['a=1; Path=/', 'b=2'] },
      changes: { setCookies: ['a=1; Path=/', 'b=2'], clearsCookies: false },
    },
    {
      name: 'all, among other types',
      headers: { 'clear-site-data': '"cache",  "cookies" ,"storage"' },
      changes: { setCookies: [], clearsCookies: true },
    },
    {
      name: 'all, by the wildcard in a second header',
      headers: { 'Clear-Site-Data': ['"cache"', '"*"'] },
      changes: { setCookies: [], clearsCookies: true },
    },
    { name: 'none, by another type', headers: { 'Clear-Site-Data': '"cache"' }, changes: NOTHING },
    { name: 'none, by a type without quotes', headers: { 'Clear-Site-Data': 'cookies' }, changes: NOTHING },
  ])('are $name', ({ headers, changes }) => {
    const [byArgument, byMethod, unsent, byBoth] = [responseOf(), responseOf(), responseOf(), responseOf()];
    byArgument.writeHead(200, headers);
    byBoth.setHeader('Content-Type', 'text/plain').writeHead(200, headers);
    for (const response of [byMethod, unsent]) response.setHeaders(new Map(Object.entries(headers)));
    byMethod.writeHead(200);
    for (const response of [byArgument, byMethod, unsent, byBoth])
      expect(cookieChangesOf(response)).toEqual(changes);
  });
});

it('a head of HTTP/2, which Node.js renders when it leaves, changes no cookies that nobody has set', () => {
  expect(cookieChangesOf({ getHeader: () => undefined })).toEqual(NOTHING);
});
