import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Fault } from 'debate-space-simulator';
import type { DebateSpaceRequestError, RateLimitedError } from '../../errors.js';
import { errorOf, serviceClients, type ScriptedAnswer } from '#support/service/service-clients.js';

const { simulator, scripted, client } = serviceClients();
const page = '<!doctype html><title>404</title>';

describe('repeating a call', () => {
  beforeEach(() => {
    jest.spyOn(Math, 'random').mockReturnValue(0); // no backoff
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  const status = (code: number): Fault => ({ kind: 'status', status: code });
  const redirect: Fault = { kind: 'redirect', location: 'https://login.example.org/' };
  it('fixes what may be better the next time', async () => {
    const service = await simulator();
    const debate = await client(service);
    const faults: readonly Fault[] = [
      ...[404, 405, 407, 408, 421, 423, 425, 429, 499, 500, 502, 503, 504, 599].map(status),
      ...([{ kind: 'outage' }, { kind: 'cut-body' }, { kind: 'malformed-body' }, redirect] as const),
      { kind: 'body', body: page, contentType: 'text/html' },
      { kind: 'body', body: page, status: 403 },
    ];
    for (const fault of faults) {
      service.faults.add({ operation: 'list', times: 3, ...fault });
      expect((await debate.listUsers()).users).toHaveLength(2);
    }
    expect(service.received.of('list')).toHaveLength(4 * faults.length);
  });

  it.each<[string, Fault, number, object]>([
    ['404', status(404), 1, { name: 'UserNotFoundError', status: 404, outcome: 'refused' }],
    ['429', status(429), 3, { name: 'RateLimitedError', status: 429, outcome: 'refused' }],
    ['503', status(503), 3, { name: 'UnavailableError', status: 503, outcome: 'unknown' }],
    ['a connection that ends', { kind: 'outage' }, 3, { name: 'NetworkError', outcome: 'unknown' }],
    ['a page', { kind: 'body', body: page }, 3, { name: 'UnexpectedResponseError', outcome: 'unknown' }],
  ])('ends with the error of the last attempt: %s', async (_what, fault, attempts, expected) => {
    const service = await simulator();
    service.faults.add({ operation: 'delete', ...fault });
    const error = await errorOf((await client(service, { http: { maxAttempts: 3 } })).deleteUser('alice'));
    const details = { ...expected, operation: 'deleteUser', attempts, retryable: attempts > 1 };
    expect(error).toMatchObject(details);
    expect(service.received.of('delete')).toHaveLength(attempts);
  });

  it('ends with a NetworkError of known outcome when the service was never reached', async () => {
    const service = await simulator();
    const debate = await client(service, { users: { listAuth: 'apiKey' } });
    await service.goDown();
    const error = await errorOf(debate.listUsers());
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_NETWORK', outcome: 'not-sent', attempts: 4 });
    expect((error as Error).message).toContain('ECONNREFUSED');
  });

  it('ends with the outcome not-sent when no token can be fetched', async () => {
    const service = await simulator();
    const debate = await client(service, { http: { maxAttempts: 2 } });
    await service.goDown();
    const error = await errorOf(debate.deleteUser('alice'));
    expect(error).toMatchObject({
      code: 'ERR_DEBATE_SPACE_NETWORK',
      operation: 'deleteUser',
      outcome: 'not-sent',
      retryable: true,
      attempts: 2,
    });
  });

  describe('an erasure', () => {
    it.each(['anonymizeUser', 'deleteUser'] as const)(
      'by %s succeeds with a 404 after a reset',
      async (operation) => {
        const service = await simulator();
        service.faults.add({
          operation: operation === 'deleteUser' ? 'delete' : 'anonymize',
          kind: 'reset-after-apply',
          times: 1,
        });
        await (await client(service))[operation]('alice');
        expect(service.users.has('alice')).toBe(false);
        expect(service.received.all.map(({ status }) => status)).toEqual([200, undefined, 404]);
      },
    );

    const refusal = { body: { success: false, error: 'it is locked' } };
    const gone = (code: number, body?: unknown): ScriptedAnswer => ({ status: code, body });
    it.each<[first: ScriptedAnswer, later: ScriptedAnswer, result: string]>([
      [gone(500), gone(410), 'done after 2'],
      [gone(408), gone(404), 'done after 2'],
      [gone(202), gone(404), 'done after 2'],
      [gone(202), gone(202), 'UnexpectedResponseError: unknown after 4'],
      [gone(429), gone(404), 'UserNotFoundError: refused after 2'],
      [gone(425), gone(410), 'UserNotFoundError: refused after 2'],
      [gone(404), gone(404), 'UserNotFoundError: refused after 1'],
      [gone(410), gone(410), 'UserNotFoundError: refused after 1'],
      ['reset', gone(404, page), 'UnexpectedResponseError: unknown after 4'],
      [gone(200, page), gone(200, page), 'UnexpectedResponseError: unknown after 4'],
      [refusal, refusal, 'RefusedError: refused after 1'],
    ])('that is answered with %j and then with %j is %s', async (first, later, result) => {
      const service = await scripted(({ index }) => (index === 0 ? first : later));
      const debate = await client(service);
      for (const operation of ['anonymizeUser', 'deleteUser'] as const) {
        const error = await debate[operation]('alice').then(
          () => undefined,
          (failure: unknown) => failure,
        );
        const { name, outcome, message } = (error ?? {}) as Partial<DebateSpaceRequestError>;
        const end = error === undefined ? 'done' : `${name}: ${outcome}`;
        expect(String(message)).not.toContain('locked');
        expect(`${end} after ${service.requests.splice(0).length}`).toBe(result);
      }
    });
  });

  describe('under http.totalTimeoutMs', () => {
    it.each([
      ['seconds', { 'retry-after': '3600' }],
      [
        'a date of a clock that is a day ahead',
        {
          date: 'Wed, 02 Jul 2098 12:00:00 GMT',
          'retry-after': 'Wed, 02 Jul 2098 13:00:00 GMT',
        },
      ],
    ])('fails immediately for a Retry-After beyond the deadline, in %s', async (_what, headers) => {
      for (const status of [429, 503]) {
        const service = await scripted(() => ({ status, headers }));
        const error = await errorOf((await client(service)).deleteUser('alice'));
        expect(error).toMatchObject({ status, retryAfterMs: 3_600_000, attempts: 1, retryable: true });
        expect((error as Error).message).toContain('http.totalTimeoutMs leaves no time');
      }
    });

    it('waits as long as Retry-After says', async () => {
      const waits = [408, 425, 503].map(async (status) => {
        const service = await scripted(({ index }) =>
          index === 0 ? { status, headers: { 'retry-after': '1' } } : { body: [] },
        );
        const debate = await client(service);
        const start = performance.now();
        await debate.listUsers();
        return performance.now() - start;
      });
      for (const waitedMs of await Promise.all(waits)) expect(waitedMs).toBeGreaterThan(990);
    });

    it('is finished immediately when the service has asked all for a pause that nobody can wait for', async () => {
      const service = await scripted(() => ({ status: 429, headers: { 'retry-after': '999999999' } }));
      const debate = await client(service);
      const error = { code: 'ERR_DEBATE_SPACE_RATE_LIMITED', retryable: true };
      const listing = (await errorOf(debate.listUsers())) as RateLimitedError;
      expect(listing).toMatchObject({ ...error, outcome: 'refused', attempts: 1 });
      const walking = await errorOf(debate.users()[Symbol.asyncIterator]().next());
      expect(walking).toMatchObject({ ...error, outcome: 'not-sent', attempts: 0 });
      const deleting = (await errorOf(debate.deleteUser('alice'))) as RateLimitedError;
      expect(deleting).toMatchObject({ ...error, outcome: 'not-sent', attempts: 0 });
      // 31 years are not believed.
      expect(listing.retryAfterMs).toBe(3_600_000);
      expect(deleting.retryAfterMs).toBeLessThanOrEqual(3_600_000);
      expect(service.requests).toHaveLength(1);
    });

    it('ends all attempts together at the deadline', async () => {
      jest.spyOn(Math, 'random').mockReturnValue(0.2);
      const service = await scripted(() => ({ status: 500 }));
      const debate = await client(service, { http: { totalTimeoutMs: 250, maxAttempts: 20 } });
      const error = await errorOf(debate.deleteUser('alice'));
      expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_UNAVAILABLE', status: 500, retryable: true });
      expect((error as Error).message).toContain('http.totalTimeoutMs leaves no time');
      expect(service.requests.length).toBeLessThan(4);
    });

    it('ends an attempt under way at the deadline', async () => {
      const service = await scripted(() => 'silence');
      const debate = await client(service, { http: { totalTimeoutMs: 1_000, timeoutMs: 60_000 } });
      expect(await errorOf(debate.deleteUser('alice'))).toMatchObject({
        code: 'ERR_DEBATE_SPACE_TIMEOUT',
        outcome: 'unknown',
        attempts: 1,
      });
    });

    it('ends the wait for a token at the deadline', async () => {
      const service = await simulator();
      service.faults.add({ operation: 'token', kind: 'latency', ms: 60_000 });
      const debate = await client(service, { http: { totalTimeoutMs: 100, timeoutMs: 60_000 } });
      const error = await errorOf(debate.deleteUser('alice'));
      expect(error).toMatchObject({
        code: 'ERR_DEBATE_SPACE_TIMEOUT',
        operation: 'deleteUser',
        retryable: true,
      });
      expect(error).toMatchObject({ outcome: 'not-sent', attempts: 0 });
    });

    it('ends the wait for the rate limiter before a repetition at the deadline, and gives the place back', async () => {
      const service = await scripted(({ index }) => (index === 0 ? { status: 500 } : { body: [] }));
      const http = { totalTimeoutMs: 1_500, rateLimit: { requests: 1, perMs: 1_600 } };
      const debate = await client(service, { http });
      const error = await errorOf(debate.deleteUser('alice'));
      expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_UNAVAILABLE', status: 500, attempts: 1 });
      expect(error).toMatchObject({ retryAfterMs: expect.any(Number), outcome: 'unknown' });
      expect(await debate.users()[Symbol.asyncIterator]().next()).toMatchObject({ done: true });
      expect(service.requests.map(({ url }) => url)).toEqual(['/api/v1/users/alice', '/api/v1/users?page=1']);
    });

    it('refuses a deletion whose slot comes in time, but leaves too little of it for the request', async () => {
      const service = await scripted(() => ({}));
      const rateLimit = { requests: 1, perMs: 70_000 };
      const http = { timeoutMs: 40_000, totalTimeoutMs: 100_000, rateLimit };
      const debate = await client(service, { http });
      await debate.deleteUser('alice');
      const error = await errorOf(debate.deleteUser('bob'));
      expect(error).toMatchObject({
        code: 'ERR_DEBATE_SPACE_RATE_LIMITED',
        outcome: 'not-sent',
        attempts: 0,
      });
      const { retryAfterMs = 0 } = error as RateLimitedError;
      expect(retryAfterMs).toBeGreaterThan(60_000);
      expect(retryAfterMs).toBeLessThan(100_000);
      expect(service.requests).toHaveLength(1);
    });

    it('leaves a walk over the users the time that the service asks for, which is not part of http.totalTimeoutMs', async () => {
      const service = await scripted(({ index }) =>
        index < 2
          ? { status: [429, 503][index] ?? 0, headers: { 'retry-after': '1' } }
          : { body: index === 2 ? [{ uid: 'alice' }] : [] },
      );
      const debate = await client(service, { http: { totalTimeoutMs: 1_500 } });
      expect(await debate.users()[Symbol.asyncIterator]().next()).toMatchObject({ value: { uid: 'alice' } });
    });
  });
});
