import { describe, expect, it, jest } from '@jest/globals';
import { defaultSessionUid, resolvedUid } from './session-user.js';

/** As MongoDB's driver has it; its `id` is bytes. */
class ObjectId {
  readonly id = new Uint8Array(12);
  toHexString(): string {
    return '65f1c0ffee65f1c0ffee0001';
  }
}
const hex = '65f1c0ffee65f1c0ffee0001';

describe('the uid of a session', () => {
  const sessions = [
    { name: 'passport with an ObjectId', session: { passport: { user: new ObjectId() } }, uid: hex },
    {
      name: 'passport with a user of { _id }',
      session: { passport: { user: { _id: hex, email: 'a@b.example' } } },
      uid: hex,
    },
    { name: 'a user of an ObjectId', session: { user: { _id: new ObjectId(), name: 'Alice' } }, uid: hex },
    { name: 'a userId that is an ObjectId', session: { userId: new ObjectId() }, uid: hex },
    { name: 'a user of { id, _id }', session: { user: { id: 7, _id: new ObjectId() } }, uid: '7' },
    { name: 'a user of { username }', session: { user: { username: 'alice' } }, uid: undefined },
  ];
  it.each(sessions)('of $name is $uid', ({ session, uid }) => {
    expect(defaultSessionUid(session)).toBe(uid);
  });

  it.each([
    { value: 7, uid: '7' },
    { value: 7n, uid: '7' },
    { value: Number(undefined), uid: undefined },
  ])('that a resolver returns as the number $value is $uid', ({ value, uid }) => {
    expect(resolvedUid(value)).toBe(uid);
  });

  it('that a resolver returns as a promise is refused, and a rejection of the promise is handled', () => {
    const then = jest.fn();
    expect(() => resolvedUid({ then })).toThrow('must not return a promise');
    expect(then).toHaveBeenCalledWith(undefined, expect.any(Function));
  });

  it('that a resolver returns as an ObjectId is its hexadecimal form', () => {
    expect(resolvedUid(new ObjectId())).toBe(hex);
  });
});
