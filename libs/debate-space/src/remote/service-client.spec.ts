import { describe, expect, it } from '@jest/globals';
import { AccessTokens } from './access-tokens.js';
import { rateLimiters } from './rate-limiters.js';
import { ServiceClient } from './service-client.js';
import { Transport } from './transport.js';

const closing = new AbortController().signal;
const call = { operation: 'deleteUser', scope: 'authentication' } as const;

describe('the client of the service', () => {
  it('gives the slot of a job back when a mistake in http.adapter leaves it without a token', async () => {
    const tokens = new AccessTokens(() => Promise.reject(new TypeError('a mistake')));
    const limiters = rateLimiters({ requests: 1, perMs: 60_000 }, undefined);
    const policy = { maxAttempts: 1, totalTimeoutMs: 1_000 };
    const client = new ServiceClient({ transport: new Transport(1_000), tokens, closing, limiters, policy });
    await expect(client.prepare(call, closing, 100)).rejects.toThrow(TypeError);
    expect(await limiters.calls.acquire(closing, 100)).toHaveProperty('release');
  });
});
