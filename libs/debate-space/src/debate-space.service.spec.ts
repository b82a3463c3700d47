import { describe, expect, it } from '@jest/globals';
import { InvalidUidError, RefusedError } from './errors.js';
import { errorOf, serviceClients } from '../../../test/support/service-clients.js';

const { simulator, scripted, client } = serviceClients();
const people = (count: number) => Array.from({ length: count }, (_, at) => ({ uid: `u-${at + 1}` }));

describe('finding a user', () => {
  it('asks the list for the uid', async () => {
    const user = { uid: 'a b&c', email: 'a@b', badges: [1] };
    const service = await scripted(() => ({ body: { success: true, data: [user] } }));
    expect(await (await client(service)).findUser('a b&c')).toEqual(user);
    expect(service.requests.map(({ url }) => url)).toEqual(['/api/v1/users?page=1&per_page=100&uid=a+b%26c']);
  });

  it('walks through the list of a service that does not know the filter, to the user and no further', async () => {
    const service = await simulator({ users: people(350) });
    const debate = await client(service);
    expect(await debate.findUser('u-150')).toMatchObject({ uid: 'u-150' });
    expect(service.received.of('list')).toHaveLength(2);
    expect(await debate.findUser('nobody')).toBeUndefined();
    expect(service.received.of('list')).toHaveLength(6);
  });

  it('takes nobody of another uid', async () => {
    const service = await scripted(({ index }) => ({
      body: index === 0 ? [{ uid: 'Ada' }, { uid: null }, {}, { uid: 'ada ' }, { uid: 'adam' }] : [],
    }));
    expect(await (await client(service)).findUser('ada')).toBeUndefined();
  });

  it('refuses what is no uid before anything is sent', async () => {
    const service = await scripted(() => ({}));
    const error = await errorOf((await client(service)).findUser('..'));
    expect(error).toBeInstanceOf(InvalidUidError);
    expect(error).toMatchObject({ operation: 'findUser', outcome: 'not-sent', attempts: 0 });
    expect(service.connections).toBe(0);
  });

  it('fails as the list does, and with the caller’s signal', async () => {
    const service = await scripted(() => ({ status: 422 }));
    const debate = await client(service);
    const error = await errorOf(debate.findUser('ada'));
    expect(error).toBeInstanceOf(RefusedError);
    expect((error as Error).message).not.toContain('ada');
    await expect(debate.findUser('ada', { signal: AbortSignal.abort() })).rejects.toThrow('abort');
  });
});
