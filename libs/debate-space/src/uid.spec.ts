import { describe, expect, it } from '@jest/globals';
import { InvalidUidError } from './errors.js';
import { errorOf, serviceClients } from 'debate-space-fixtures/service-clients.js';

const { simulator, scripted, client } = serviceClients();

const accepted = [
  ['alice', 'alice'],
  ['42', '42'],
  ['a/b', 'a%2Fb'],
  ['100%', '100%25'],
  ['%2e%2e', '%252e%252e'],
  ['who?', 'who%3F'],
  ['a#b', 'a%23b'],
  ['a b', 'a%20b'],
  [' ', '%20'],
  ['a+b', 'a%2Bb'],
  ['a\\b', 'a%5Cb'],
  ['Zoë', 'Zo%C3%AB'],
  ['李', '%E6%9D%8E'],
  ['🦊', '%F0%9F%A6%8A'],
  ['..a', '..a'],
  ['...', '...'],
  ['a/...', 'a%2F...'],
  ['a./b..', 'a.%2Fb..'],
  ['a@b.example', 'a%40b.example'],
] as const;

const refused = [
  ['', 'is empty'],
  ['.', 'has a dot segment'],
  ['..', 'has a dot segment'],
  ['../users', 'has a dot segment'],
  ['a/../b', 'has a dot segment'],
  ['a/.', 'has a dot segment'],
  ['a\\..\\b', 'has a dot segment'],
  ['a/..\\b', 'has a dot segment'],
  ['a\nb', 'has control characters'],
  ['a\0', 'has control characters'],
  ['\u007f', 'has control characters'],
  ['\u0085', 'has control characters'],
  ['\ud83d', 'has a lone surrogate'],
  ['\udd8aa', 'has a lone surrogate'],
  [undefined, 'of type undefined'],
  [null, 'is null'],
  [42, 'of type number'],
  [['alice'], 'of type object'],
  [{ toString: () => 'alice' }, 'of type object'],
] as const;

describe('a uid', () => {
  it.each(accepted)('%j is the one path part %j', async (uid, part) => {
    const service = await simulator({ users: [{ uid }] });
    const debate = await client(service);
    await debate.anonymizeUser(uid);
    service.users.add({ uid });
    await debate.deleteUser(uid);
    expect(service.received.of('anonymize')[0]?.path).toBe(`/api/v1/users/${part}/anonymize`);
    expect(service.received.of('delete')[0]?.path).toBe(`/api/v1/users/${part}`);
    expect(service.users.wasDeleted(uid)).toBe(true);
  });

  it.each(refused)('%j is refused before anything is sent', async (uid, problem) => {
    const service = await scripted(() => ({}));
    const debate = await client(service);
    for (const operation of ['anonymizeUser', 'deleteUser', 'logoutUser'] as const) {
      const error = await errorOf(debate[operation](uid as string));
      expect(error).toBeInstanceOf(InvalidUidError);
      expect(error).toMatchObject({ operation, retryable: false, outcome: 'not-sent', attempts: 0 });
      expect((error as Error).message).toContain(problem);
    }
    expect(service.connections).toBe(0);
  });
});
