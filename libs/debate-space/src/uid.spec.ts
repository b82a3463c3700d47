import { describe, expect, it } from '@jest/globals';
import { InvalidUidError } from './errors.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';

const { simulator, scripted, client, runtime } = serviceClients();

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
  [4.2, 'a number with a fraction'],
  ['null', 'the text of a missing value'],
  ['["alice"]', 'the text of a JSON array'],
  ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln', 'a token'],
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

  it('is the digits of a number', async () => {
    const service = await simulator({ users: [{ uid: '42' }] });
    const debate = await client(service);
    const number = 42 as unknown as string;
    expect(await debate.findUser(number)).toMatchObject({ uid: '42' });
    await debate.logoutUser(number);
    await service.received.waitFor('logout');
    await debate.deleteUser(number);
    expect(service.received.logouts).toEqual(['42']);
    expect(service.users.wasDeleted('42')).toBe(true);
  });

  it('is found in JSON of a user for a logout, and for nothing that cannot be undone', async () => {
    const service = await simulator({ users: [{ uid: '7' }] });
    const { service: debate, erasures } = await runtime(service);
    const json = '{"id":7,"email":"ada@post.example"}';
    await debate.logoutUser(json);
    await service.received.waitFor('logout');
    const request = { mode: 'delete', reference: 'GDPR-1' } as const;
    const refusals = [
      debate.deleteUser(json),
      debate.anonymizeUser(json),
      debate.findUser(json),
      erasures.request({ ...request, uid: json }),
      erasures.requestMany([json], request),
    ];
    for (const error of await Promise.all(refusals.map(errorOf))) {
      expect((error as Error).message).toContain('the uid is the text of a JSON object');
      expect((error as Error).message).not.toContain('ada@');
    }
    expect(service.received.logouts).toEqual(['7']);
    expect(service.received.count).toBe(1);
  });
});
