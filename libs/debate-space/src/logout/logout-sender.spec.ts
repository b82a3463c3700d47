import { describe, expect, it } from '@jest/globals';
import type { DebateSpaceEvent } from '../events.js';
import type { LogoutRoute } from '../service/calls/logout-route.js';
import { Secret } from '../secrets/secret.js';
import type { LogoutEntry } from './logout-repository.js';
import { LogoutSender } from './logout-sender.js';
import { LogoutTokenSigner, type LogoutTokenOptions } from './logout-token-signer.js';

const entry: LogoutEntry = { id: 'a', uid: 'alice', reason: 'requested', endedAt: 0 };
const silence = (): Promise<never> => new Promise(() => undefined);

async function sendWith(functions: Partial<LogoutTokenOptions>) {
  const signer = new LogoutTokenSigner({
    secretKey: new Secret('a secret key of a test, that is long enough'),
    secretKeyEncoding: 'utf8',
    algorithm: 'HS256',
    issuer: 'demo',
    audience: 'the-api-key',
    lifetimeSeconds: 120,
    ...functions,
  });
  const faults: DebateSpaceEvent[] = [];
  const route = { url: 'https://x', send: () => Promise.resolve({ status: 200 }) } as unknown as LogoutRoute;
  const never = new AbortController().signal;
  const sender = new LogoutSender(signer, route, 20, never, (event) => void faults.push(event));
  return { answer: await sender.send(entry), faults };
}

describe('an attempt at a logout', () => {
  it.each([
    ['secretKey', { secretKey: { current: silence } }],
    ['logout.claims', { claims: silence }],
  ])('names the function that does not answer in time: %s', async (where, functions) => {
    expect(await sendWith(functions)).toEqual({
      answer: { reason: `${where} did not answer`, local: true },
      faults: [{ type: 'fault', where, error: expect.any(String) }],
    });
  });
});
