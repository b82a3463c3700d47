import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { getEventListeners } from 'node:events';
import { AbortedError } from '../../errors.js';
import { errorOf, serviceClients } from '#support/service/service-clients.js';

const { simulator, scripted, client, runtime } = serviceClients();

describe('a call that is aborted', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  function expectAborted(error: unknown, details: object): void {
    expect(error).toBeInstanceOf(AbortedError);
    expect(error).toMatchObject({
      name: 'AbortError',
      code: 'ERR_DEBATE_SPACE_ABORTED',
      operation: 'deleteUser',
      retryable: true,
      ...details,
    });
  }

  it('before it begins sends nothing', async () => {
    const service = await simulator();
    const debate = await client(service);
    const error = await errorOf(debate.deleteUser('alice', { signal: AbortSignal.abort() }));
    expectAborted(error, { outcome: 'not-sent', attempts: 0 });
    await debate.listUsers();
    expect(service.received.all.map(({ operation }) => operation)).toEqual(['token', 'list']); // one token, of its scope
  });

  it('while it waits for the rate limiter sends nothing', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { rateLimit: { requests: 1, perMs: 60_000 } } });
    await debate.listUsers();
    const patience = new AbortController();
    const error = errorOf(debate.deleteUser('alice', { signal: patience.signal }));
    patience.abort();
    expectAborted(await error, { outcome: 'not-sent', attempts: 0 });
    expect(service.received.of('delete')).toEqual([]);
  });

  it('while it waits for a token that others wait for, too, leaves them the token', async () => {
    const service = await simulator();
    service.faults.add({ operation: 'token', kind: 'latency', ms: 100 });
    const debate = await client(service);
    const patience = new AbortController();
    const impatient = errorOf(debate.deleteUser('alice', { signal: patience.signal }));
    const patient = debate.anonymizeUser('bob');
    await service.received.waitFor('token');
    patience.abort();
    expectAborted(await impatient, { outcome: 'not-sent', attempts: 0 });
    await patient;
    expect(service.received.of('token')).toHaveLength(1);
    expect(service.users.has('alice')).toBe(true);
  });

  it('during the request may have been carried out', async () => {
    const service = await simulator();
    service.faults.add({ operation: 'delete', kind: 'latency', ms: 60_000 });
    const patience = new AbortController();
    const error = errorOf((await client(service)).deleteUser('alice', { signal: patience.signal }));
    await service.received.waitFor('delete');
    patience.abort();
    expectAborted(await error, { outcome: 'unknown', attempts: 1 });
    expect(service.users.has('alice')).toBe(false);
  });

  it.each([
    [429, 'refused'],
    [503, 'unknown'],
  ])('during the backoff after %d has the outcome “%s”', async (status, outcome) => {
    const service = await scripted(() => ({ status, headers: { 'retry-after': '20' } }));
    const patience = new AbortController();
    // The length of the backoff is the last number drawn before it.
    jest.spyOn(Math, 'random').mockImplementation(() => {
      queueMicrotask(() => {
        patience.abort();
      });
      return 1;
    });
    const error = await errorOf((await client(service)).deleteUser('alice', { signal: patience.signal }));
    expectAborted(error, { outcome, attempts: 1 });
    expect(service.requests).toHaveLength(1);
  });

  it('by the app’s shutdown ends as well', async () => {
    const service = await simulator();
    service.faults.add({ operation: 'delete', kind: 'latency', ms: 60_000 });
    const opened = await runtime(service);
    const error = errorOf(opened.service.deleteUser('alice'));
    await service.received.waitFor('delete');
    await opened.close();
    expectAborted(await error, { outcome: 'unknown', attempts: 1 });
  });

  it('stops a walk over the users', async () => {
    const service = await simulator();
    const patience = new AbortController();
    const users = (await client(service)).users({ perPage: 1 }, patience)[Symbol.asyncIterator]();
    await users.next();
    patience.abort();
    await expect(users.next()).rejects.toMatchObject({ code: 'ERR_DEBATE_SPACE_ABORTED', attempts: 0 });
    expect(service.received.of('list')).toHaveLength(1);
  });

  it('leaves no listener on the signal, and neither does a call that ends otherwise', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { rateLimit: { requests: 3, perMs: 60_000 } } });
    const patience = new AbortController();
    const { signal } = patience;
    await debate.listUsers({}, { signal });
    await errorOf(debate.deleteUser('nobody', { signal }));
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    service.faults.add({ operation: 'list', kind: 'latency', ms: 60_000 });
    const waiting = [debate.listUsers({}, { signal }), debate.listUsers({}, { signal })].map(errorOf);
    await service.received.waitFor('list', { count: 2 });
    expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0);
    patience.abort();
    await Promise.all(waiting);
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });
});
