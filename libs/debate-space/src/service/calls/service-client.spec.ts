import { describe, expect, it } from '@jest/globals';
import { AccessTokens } from './access-tokens.js';
import { RateLimiter } from '../rate-limiter.js';
import { ServiceClient } from './service-client.js';
import { Transport } from '../http/transport.js';

const shutdownSignal = new AbortController().signal;

describe('the client of the service', () => {
  it('gives the slot of a job back when a mistake in http.adapter leaves it without a token', async () => {
    const tokens = new AccessTokens(() => Promise.reject(new TypeError('a mistake')));
    const limiter = new RateLimiter({ requests: 1, perMs: 60_000 });
    const policy = { maxAttempts: 1, totalTimeoutMs: 1_000, timeoutMs: 1_000 };
    const client = new ServiceClient({
      transport: new Transport(1_000),
      tokens,
      shutdownSignal,
      limiter,
      policy,
    });
    await expect(client.prepareJob('deleteUser', 'authentication', shutdownSignal)).rejects.toThrow(
      TypeError,
    );
    expect(await limiter.acquire(shutdownSignal, 100)).toHaveProperty('release');
  });
});
