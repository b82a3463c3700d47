import { describe, expect, it } from '@jest/globals';
import { SetupWarnings, UidCount } from './setup-warnings.js';

/** The warnings of sessions without a uid, each by its code and the keys that it names. */
function warningsOf(sessions: readonly object[]): (readonly [code: string, keys: string | undefined])[] {
  const given: (readonly [string, string | undefined])[] = [];
  const warnings = new SetupWarnings(({ code, message }) => {
    expect(message).not.toMatch(/alice/); // keys, never values
    given.push([code, /\(session keys: (.*)\)/.exec(message)?.[1]]);
  }, false);
  for (const session of sessions) warnings.withoutUid(session);
  return given;
}

describe('a session in which no uid is found', () => {
  it.each<[keys: string, session: object]>([
    ['passport, passport.user.username', { passport: { user: { username: 'alice' } } }],
    ['user, user.email', { user: { email: 'alice@example.org' } }],
    ['account, account.name', { account: { name: 'alice' } }],
    ['isLoggedIn, email', { isLoggedIn: true, email: 'alice@example.org' }],
    ['auth, auth.userId', { auth: { userId: 'alice' } }],
    [
      'grant, grant.provider, grant.state, grant.response.token',
      { grant: { provider: 'x', state: 'y', response: { token: 'alice' } } },
    ],
    ...['adminId', 'employee', 'tokenSet', 'keycloak-token', 'profile', 'access_token'].map(
      (key): [string, object] => [key, { [key]: 'alice' }],
    ),
  ])('is warned of once when its keys are those of a user: %s', (keys, user) => {
    const session = { cookie: {}, ...user };
    expect(warningsOf([session, session])).toEqual([['uid-not-found', `cookie, ${keys}`]]);
  });

  it.each<[string, object]>([
    ['passport after a logout', { passport: {} }],
    ['no user', { basket: 1, user: null, userId: '' }],
    ['a login that is not complete', { auth: { state: 'x', nonce: 'y', returnTo: '/' }, isLoggedIn: false }],
    ['the provider of a login', { grant: { provider: 'x' }, 'oauth2:example': { state: 'x' } }],
  ])('is not warned of when it has %s', (_what, session) => {
    expect(warningsOf([session])).toEqual([]);
  });

  it('is warned of after thousands of sessions without a user', () => {
    const visitors = Array.from({ length: 10_000 }, (_, n) => ({ cookie: {}, basket: [n] }));
    expect(warningsOf([...visitors, { user: { name: 'alice' } }])).toEqual([
      ['uid-not-found', 'user, user.name'],
    ]);
  });
});

describe('the count of sessions without a uid', () => {
  const staff = { cookie: {}, staffNumber: 7 };
  /** Counts the sessions; `uid` stands for one that has a uid. */
  function countOf(sessions: readonly (object | 'uid')[], idOf = (n: number): string => String(n)): string[] {
    const warned: string[] = [];
    const count = new UidCount((keys) => warned.push(keys));
    for (const [n, session] of sessions.entries()) {
      if (session === 'uid') count.found();
      else count.notFound(idOf(n), session);
    }
    return warned;
  }
  const many = (session: object, length: number): object[] => Array.from({ length }, () => session);

  it('warns once, with their keys, when a hundred had none', () => {
    expect(countOf(many(staff, 300))).toEqual(['cookie, staffNumber']);
    expect(countOf(many(staff, 99))).toEqual([]);
  });

  it('does not warn when one had a uid', () => {
    expect(countOf([...many(staff, 50), 'uid', ...many(staff, 300)])).toEqual([]);
  });

  it('does not count visitors, nor one session again', () => {
    const visitor = { csrfSecret: 'x', _csrf: 'y', flash: {}, cart: [1], returnTo: '/' };
    expect(countOf(many(visitor, 300))).toEqual([]);
    expect(countOf(many(staff, 300), () => 'the same')).toEqual([]);
  });

  it('names twenty keys at most', () => {
    const sessions = Array.from({ length: 300 }, (_, n) => ({ cookie: {}, [`key ${n % 40}`]: n }));
    expect(countOf(sessions).map((keys) => keys.split(', ').length)).toEqual([20]);
  });
});

it('a hundred requests with a session of an unknown kind and no store are warned of, visitors are not', () => {
  const seen: string[] = [];
  const warnings = new SetupWarnings(({ code, message }) => seen.push(code, message), false);
  for (let n = 0; n < 1_000; n += 1) {
    warnings.withoutStore({});
    warnings.withoutStore({ csrfSecret: 'x', flash: {} });
  }
  for (let n = 0; n < 99; n += 1) warnings.withoutStore({ staffNumber: 7 });
  expect(seen).toEqual([]);
  for (let n = 0; n < 2; n += 1) warnings.withoutStore({ staffNumber: 7 });
  expect(seen).toEqual(['session-without-store', expect.stringContaining('(session keys: staffNumber)')]);
});

it('a host with a function of its own for uids is told to mend that function', () => {
  const texts: string[] = [];
  const warnings = new SetupWarnings(({ message, hint }) => texts.push(`${message}: ${hint}`), true);
  warnings.withoutUid({ user: { name: 'alice' } });
  warnings.warn('uid-never-found', 'staffNumber');
  for (const text of texts)
    expect(text).toMatch(/your own function returned no uid.*: make the option session.uid return the uid/);
  expect(texts).toHaveLength(2);
});
