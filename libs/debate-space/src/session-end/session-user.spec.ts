import { describe, expect, it, jest } from '@jest/globals';
import { defaultSessionUid, resolvedUid, userIn } from './session-user.js';

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

  it('that a resolver returns as a promise is refused, and a rejection of the promise is handled', () => {
    const then = jest.fn();
    expect(() => resolvedUid({ then })).toThrow('must not return a promise');
    expect(then).toHaveBeenCalledWith(undefined, expect.any(Function));
  });
});
