import { describe, expect, it } from '@jest/globals';
import { LearnedCookies } from './learned-cookies.js';
import type { SessionRequest } from './session-request.js';

const ATTRIBUTES = { path: '/', domain: undefined };

/** A request with these cookies, whose answer sets those. */
const requestOf = (cookieHeader: string | undefined, more: Partial<SessionRequest> = {}): SessionRequest => {
  const native = { url: '/', headers: { host: 'app.example.org' } };
  return { native, cookieHeader, setCookies: [], clearsCookies: false, ...more } as unknown as SessionRequest;
};

/** What is known after one request with this cookie has loaded the session s1. */
function learnedFrom(cookieHeader: string, cookie: unknown = ATTRIBUTES): LearnedCookies {
  const cookies = new LearnedCookies();
  cookies.learn('s1', { cookie }, requestOf(cookieHeader));
  return cookies;
}

describe('the id of a session in a cookie', () => {
  it.each([
    { what: 'is that of express-session', first: 'sid=s%3As1.signature', next: 'sid=s%3As2.other', id: 's2' },
    { what: 'of express-session may have dots', first: 'sid=s%3As1.sig', next: 'sid=s%3As.2.sig', id: 's.2' },
    { what: 'is that of @fastify/session', first: 'sid=s1.signature', next: 'sid=s2.other', id: 's2' },
    { what: 'of @fastify/session may have dots', first: 'sid=s1.sig', next: 'sid=s.2.sig', id: 's.2' },
    { what: 'is the whole value where it was', first: 'sid=s1', next: 'sid=s2.other', id: 's2.other' },
    { what: 'is in the same cookie', first: 'theme=dark; sid=s1', next: 'theme=s1; sid=s2', id: 's2' },
    {
      what: 'is none where it is signed otherwise',
      first: 'sid=s%3As1.sig',
      next: 'sid=s2.sig',
      id: undefined,
    },
    { what: 'is none where it is not signed', first: 'sid=s1.signature', next: 'sid=s2', id: undefined },
    { what: 'is none in another cookie', first: 'sid=s1', next: 'theme=dark', id: undefined },
    { what: 'is none in a cookie of a longer name', first: 'sid=s1', next: 'sid2=s2', id: undefined },
    { what: 'is none where there is no cookie', first: 'sid=s1', next: undefined, id: undefined },
    { what: 'is none where it was never seen', first: 'sid=encrypted', next: 'sid=s1', id: undefined },
  ])('$what', ({ first, next, id }) => {
    expect(learnedFrom(first).sentBy(requestOf(next))).toBe(id);
  });

  it('may be in those cookies alone whose names have carried one', () => {
    const cookies = learnedFrom('theme=dark; sid=s1');
    expect([cookies.mayBeIn('sid=x'), cookies.mayBeIn('theme=dark'), cookies.mayBeIn('')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(new LearnedCookies().mayBeIn('sid=x')).toBe(false);
  });

  it('is learned of a login by the request that follows', () => {
    const cookies = new LearnedCookies();
    for (const header of [undefined, 'sid=s1'])
      cookies.learn('s1', { cookie: ATTRIBUTES }, requestOf(header));
    expect(cookies.mayBeIn('sid=s1')).toBe(true);
  });
});

describe('a host with a second session cookie', () => {
  const learn = (cookies: LearnedCookies, name: string, times: number): void => {
    for (let n = 0; n < times; n += 1) cookies.learn('s1', { cookie: ATTRIBUTES }, requestOf(`${name}=s1`));
  };

  it('has it learned from one request in a thousand', () => {
    const cookies = learnedFrom('first=s1.signature');
    learn(cookies, 'second', 1_000);
    expect(cookies.mayBeIn('second=s1')).toBe(false);
    learn(cookies, 'second', 1);
    expect(cookies.sentBy(requestOf('second=s2'))).toBe('s2');
    expect(cookies.sentBy(requestOf('first=nothing; second=s2'))).toBe('s2');
  });

  it('has no more than eight learned', () => {
    const cookies = new LearnedCookies();
    for (let n = 1; n <= 9; n += 1) {
      learn(cookies, `cookie-${n}`, 1_001);
      learn(cookies, 'cookie-1', 1_001); // takes no place of its own
    }
    expect(cookies.mayBeIn('cookie-8=s1')).toBe(true);
    expect(cookies.mayBeIn('cookie-9=s1')).toBe(false);
  });
});

it('a host whose cookies show no id has its requests looked at less and less', () => {
  const cookies = new LearnedCookies();
  let looks = 0;
  const hidden = Object.defineProperty(requestOf(''), 'cookieHeader', {
    get: () => {
      looks += 1;
      return 'sid=encrypted';
    },
  });
  const looksAt = (requests: number): number => {
    looks = 0;
    for (let n = 0; n < requests; n += 1) cookies.learn('s1', {}, hidden);
    return looks;
  };
  const early = looksAt(100);
  expect(early).toBeGreaterThan(10);
  expect(looksAt(100)).toBeLessThan(early);
  looksAt(1_000_000);
  expect(looksAt(10_010)).toBe(10); // one in a thousand, at least
});

describe('a browser whose request has loaded no session', () => {
  const S1 = 'sid=s1.signature';
  const LEFT = [{ sid: 's1', next: undefined }];
  it.each([
    { what: 'leaves it when its cookie is cleared', set: ['sid=; Max-Age=0; Path=/'], left: LEFT },
    { what: 'leaves it for another', set: ['sid=s2.signature'], left: [{ sid: 's1', next: 's2' }] },
    { what: 'leaves it when its cookie is emptied', set: ['sid='], left: LEFT },
    { what: 'leaves it when the site is cleared', clears: true, set: [], left: LEFT },
    { what: 'keeps it by the same cookie', set: ['sid=s1.other-signature'], left: [] },
    { what: 'keeps it by another cookie', set: ['theme=dark'], left: [] },
    { what: 'keeps it by a cookie of another path', set: ['sid=; Max-Age=0; Path=/app'], left: [] },
    {
      what: 'keeps it by a cookie of a domain above',
      set: ['sid=; Max-Age=0; Domain=example.org'],
      left: [],
    },
    { what: 'leaves none where it had none', sent: 'theme=dark', set: ['sid=; Max-Age=0'], left: [] },
    { what: 'leaves none where its cookie was empty', sent: 'sid=', set: ['sid=s2.signature'], left: [] },
    { what: 'leaves none where it has no cookies', sent: undefined, set: ['sid=s2.signature'], left: [] },
  ])('$what', ({ set, clears = false, left, ...row }) => {
    const sent = 'sent' in row ? row.sent : `${S1}; theme=dark`;
    const request = requestOf(sent, { setCookies: set, clearsCookies: clears });
    expect(learnedFrom(S1, { path: '/' }).leftBy(request)).toEqual(left);
  });

  it.each([
    { what: 'its path', cookie: { path: '/app' }, clears: 'sid=; Max-Age=0; Path=/app', left: LEFT },
    { what: 'another path', cookie: { path: '/app' }, clears: 'sid=; Max-Age=0; Path=/', left: [] },
    { what: 'its domain', cookie: { domain: 'a.b' }, clears: 'sid=; Max-Age=0; Domain=a.b', left: LEFT },
    { what: 'another domain', cookie: { domain: 'a.b' }, clears: 'sid=; Max-Age=0; Domain=c.a.b', left: [] },
    { what: 'no path', cookie: null, clears: 'sid=; Max-Age=0; Path=/', left: LEFT },
  ])('leaves it, or not, by a cookie of $what', ({ cookie, clears, left }) => {
    const native = { url: '/app/page', headers: {} };
    const request = requestOf(S1, { native, setCookies: [clears] });
    expect(learnedFrom(S1, cookie).leftBy(request)).toEqual(left);
  });
});
