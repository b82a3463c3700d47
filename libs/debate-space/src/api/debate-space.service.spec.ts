import { describe, expect, it } from '@jest/globals';
import type { FindUserOptions } from './debate-space.service.js';
import { PageLimitError, RefusedError } from '../errors.js';
import { errorOf, serviceClients, type ScriptedService } from '#support/service/service-clients.js';

const { simulator, scripted, client } = serviceClients();
const people = (count: number) => Array.from({ length: count }, (_, at) => ({ uid: `u-${at + 1}` }));

describe('finding a user', () => {
  it('requests the list of the uid', async () => {
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

  it('repeats the request without the filter that the service refuses', async () => {
    const service = await scripted(({ url }) =>
      url.includes('uid=') ? { status: 422 } : { body: url.includes('page=2&') ? [{ uid: 'ada' }] : [{}] },
    );
    expect(await (await client(service)).findUser('ada')).toEqual({ uid: 'ada' });
    expect(service.requests.map(({ url }) => url)).toEqual([
      '/api/v1/users?page=1&per_page=100&uid=ada',
      '/api/v1/users?page=1&per_page=100',
      '/api/v1/users?page=2&per_page=100',
    ]);
  });

  it.each<[string, FindUserOptions | undefined, number]>([
    ['50 pages', undefined, 50],
    ['as many pages as the caller says', { maxPages: 2 }, 2],
  ])('reads no more than %s of a list that goes on, and says so', async (_what, options, pages) => {
    const service = await scripted(({ index }) => ({ body: [{ uid: `u-${index}` }] }));
    const error = await errorOf((await client(service)).findUser('ada', options));
    expect(error).toBeInstanceOf(PageLimitError);
    expect(error).toMatchObject({
      code: 'ERR_DEBATE_SPACE_PAGE_LIMIT',
      operation: 'findUser',
      attempts: pages,
    });
    expect((error as Error).message).toContain('hint: give a higher maxPages');
    expect(service.requests).toHaveLength(pages);
  });

  it.each([0, 1.5, -1, Number.NaN])('refuses maxPages: %d before anything is sent', async (maxPages) => {
    const service = await scripted(() => ({}));
    const error = await errorOf((await client(service)).findUser('ada', { maxPages }));
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_INVALID_ARGUMENT', outcome: 'not-sent' });
    expect(service.connections).toBe(0);
  });

  describe('where the service ignores the filter, and the list goes on', () => {
    const endless = (): Promise<ScriptedService> =>
      scripted(({ index }) => ({ body: [{ uid: `u-${index}` }], delayMs: 100 }));

    it('ends with http.totalTimeoutMs for all pages together', async () => {
      const service = await endless();
      const debate = await client(service, { http: { totalTimeoutMs: 550 } });
      await expect(debate.findUser('ada')).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_TIMEOUT' });
      expect(service.requests.length).toBeLessThan(7);
    });

    it('is refused immediately when the slot of a further page cannot come in time', async () => {
      const service = await endless();
      const debate = await client(service, { http: { rateLimit: { requests: 2, perMs: 60_000 } } });
      const error = { code: 'ERR_DEBATE_SPACE_RATE_LIMITED', outcome: 'not-sent' };
      await expect(debate.findUser('ada')).rejects.toMatchObject(error);
      expect(service.requests).toHaveLength(2);
    });
  });

  it('takes nobody of another uid', async () => {
    const service = await scripted(({ index }) => ({
      body: index === 0 ? [{ uid: 'Ada' }, { uid: null }, {}, { uid: 'ada ' }, { uid: 'adam' }] : [],
    }));
    expect(await (await client(service)).findUser('ada')).toBeUndefined();
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
