import { describe, expect, it } from '@jest/globals';
import { ServiceClock, SimulatedUsers } from './users.js';
import { DebateSessions, type DebateSessionChange } from './debate-sessions.js';

describe('the registered users', () => {
  it('are found by uid and listed in order', () => {
    const users = new SimulatedUsers(new ServiceClock(0));
    users.add({ uid: 'u-2', first_name: 'F' });
    users.add({ uid: 'u-1', contributions: 4 });
    expect(users.get('u-2')).toMatchObject({ id: 1, first_name: 'F', last_name: null, contributions: 0 });
    expect(users.get('u-3')).toBeUndefined();
    expect(users.all().map(({ uid }) => uid)).toEqual(['u-2', 'u-1']);
    expect(users.count).toBe(2);
  });

  it('are listed as they are now, in part too, and to those who hear about a removal', () => {
    const users = new SimulatedUsers(new ServiceClock(0));
    for (const uid of ['u-1', 'u-2', 'u-3']) users.add({ uid });
    const uids = () => users.slice(1, 3).map(({ uid }) => uid);
    expect(uids()).toEqual(['u-2', 'u-3']);
    const told: unknown[] = [];
    users.on('removed', () => told.push(uids()));
    users.delete('u-1');
    users.anonymize('u-2');
    expect(told).toEqual([['u-3'], ['u-3']]);
    expect(users.all().map(({ uid }) => uid)).toEqual([null, 'u-3']);
    users.add({ uid: 'u-4' });
    expect(uids()).toEqual(['u-3', 'u-4']);
    users.all().pop();
    expect(users.all()).toHaveLength(3);
  });

  it('are dated by the service’s clock', () => {
    const users = new SimulatedUsers(new ServiceClock(-86_400));
    const { created_at } = users.add({ uid: 'u-1' });
    expect(Date.now() - Date.parse(created_at)).toBeGreaterThanOrEqual(86_400_000);
  });

  it('are refused when the uid is empty, taken, or was deleted', () => {
    const users = new SimulatedUsers(new ServiceClock(0));
    users.add({ uid: 'u-1' });
    expect(() => users.add({ uid: '' })).toThrow('must not be empty');
    expect(() => users.add({ uid: 'u-1' })).toThrow(expect.objectContaining({ code: 'DUPLICATE_UID' }));
    users.delete('u-1');
    expect(() => users.add({ uid: 'u-1' })).toThrow(expect.objectContaining({ code: 'DELETED_UID' }));
  });

  it('may register again after an anonymization, as somebody new', () => {
    const users = new SimulatedUsers(new ServiceClock(0));
    const first = users.add({ uid: 'u-1', contributions: 2 });
    users.anonymize('u-1');
    const second = users.add({ uid: 'u-1' });
    expect(second.id).not.toBe(first.id);
    expect(users.all()).toMatchObject([{ uid: null, contributions: 2 }, { uid: 'u-1' }]);
  });
});

describe('the debate sessions', () => {
  it('begin with a sign-in that registers an unknown user, and report each change once', () => {
    const users = new SimulatedUsers(new ServiceClock(0));
    const debate = new DebateSessions(users);
    const changes: DebateSessionChange[] = [];
    debate.on('change', (change) => changes.push(change));
    debate.signIn('u-1', { first_name: 'F' });
    debate.signIn('u-1');
    expect(users.get('u-1')?.first_name).toBe('F');
    expect(debate.signedIn()).toEqual(['u-1']);
    expect([debate.signOut('u-1'), debate.signOut('u-1')]).toEqual([true, false]);
    expect(changes).toEqual([
      { uid: 'u-1', signedIn: true },
      { uid: 'u-1', signedIn: false },
    ]);
  });

  it('end with the user', () => {
    const users = new SimulatedUsers(new ServiceClock(0));
    const debate = new DebateSessions(users);
    debate.signIn('u-1');
    debate.signIn('u-2');
    users.anonymize('u-1');
    users.delete('u-2');
    expect(debate.signedIn()).toEqual([]);
  });
});
