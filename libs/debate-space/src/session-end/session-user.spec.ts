import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { asStored, defaultSessionUid, hasExpired, resolvedUid, userIn } from './session-user.js';

const json = '{"id":7,"email":"ada@post.example"}';
const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln';

describe('the uid of a session', () => {
  const sessions = [
    {
      name: 'passport with a user of { _id }',
      session: { passport: { user: { _id: '65f1' } } },
      uid: '65f1',
    },
    { name: 'passport with JSON of a user', session: { passport: { user: json } }, uid: '7' },
    { name: '@fastify/passport with JSON of a user', session: { passport: json }, uid: '7' },
    { name: 'a user of { id, _id }', session: { user: { id: 7, _id: '65f1' } }, uid: '7' },
    { name: 'a userId', session: { user: { username: 'alice' }, userId: 7 }, uid: '7' },
    { name: 'a uid', session: { passport: {}, user: true, userId: '', uid: 'alice' }, uid: 'alice' },
    { name: 'a user of { username }', session: { user: { username: 'alice' } }, uid: undefined },
    { name: 'a token in front of a userId', session: { user: jwt, userId: 7 }, uid: undefined },
  ];
  it.each(sessions)('of $name is $uid', ({ session, uid }) => {
    expect(defaultSessionUid(session)).toBe(uid);
  });

  it('that is refused says why', () => {
    expect(userIn({ user: jwt, userId: 7 })).toMatchObject({ problem: expect.stringContaining('a token') });
  });

  it('that a uid function returns as a promise is refused, and a rejection of the promise is handled', () => {
    const then = jest.fn();
    expect(() => resolvedUid({ then })).toThrow('must not return a promise');
    expect(then).toHaveBeenCalledWith(undefined, expect.any(Function));
  });
});

describe('a session', () => {
  const now = Date.UTC(2030, 0);
  beforeEach(() => void jest.useFakeTimers({ now }));
  afterEach(() => void jest.useRealTimers());

  it.each([
    { leftMs: -1, isOver: true },
    { leftMs: 100, isOver: true }, // a handler that gives it so little means to end it
    { leftMs: 101, isOver: false },
  ])('whose cookie expires in $leftMs ms has expired: $isOver', ({ leftMs, isOver }) => {
    const expires = new Date(now + leftMs);
    expect(hasExpired({ cookie: { expires } })).toBe(isOver);
    expect(hasExpired({ cookie: { expires: expires.toISOString() } })).toBe(isOver);
  });

  it('is read in the form that its user has in the store', () => {
    const plain = { cookie: {}, user: { uid: 'alice' } };
    expect(asStored(plain)).toBe(plain);
    const user = { id: 'row 7', toJSON: () => ({ uid: 'alice' }) };
    expect(asStored({ ...plain, user })).toEqual(plain);
  });

  it.each([{}, { cookie: null }, { cookie: { expires: null } }, { cookie: { expires: 'never' } }])(
    'of %j has not expired',
    (session) => {
      expect(hasExpired(session)).toBe(false);
    },
  );
});
