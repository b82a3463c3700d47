import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { serviceClients, type ScriptedAnswer } from '#support/service/service-clients.js';
import { backchannelLogoutUrl, LogoutRoute } from './logout-route.js';
import { Transport } from '../http/transport.js';

const { scripted, simulator } = serviceClients();
const never = new AbortController().signal;
let transport: Transport;

beforeEach(() => {
  transport = new Transport(2_000); // a busy machine may need more than a moment
});
afterEach(() => {
  transport.close();
});

const routeTo = (url: string, name = 'demo') => new LogoutRoute(transport, backchannelLogoutUrl(url, name));

describe('the logout route', () => {
  it('takes the token as a form, once', async () => {
    const service = await scripted(() => ({ status: 503 }));
    await routeTo(service.url).send('a.b.c', never);
    expect(service.requests).toHaveLength(1);
    expect(service.requests[0]).toMatchObject({
      method: 'POST',
      url: '/auth/logout/demo',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'logout_token=a.b.c',
    });
    expect(service.requests[0]?.headers.authorization).toBeUndefined();
  });

  it.each([
    ['my-app', 'my-app'],
    ['town hall/1', 'town%20hall%2F1'],
    ['Bürger?#', 'B%C3%BCrger%3F%23'],
  ])('of the application %j ends with %s', (name, part) => {
    expect(backchannelLogoutUrl('https://x/root', name)).toBe(`https://x/root/auth/logout/${part}`);
  });

  // What each status and body means is shown by http/status-table.spec.ts.
  it.each<[string, ScriptedAnswer, object]>([
    ['429', { status: 429, headers: { 'retry-after': '7' } }, { status: 429, retryAfterMs: 7000 }],
    ['a reset', 'reset', { reason: 'ECONNRESET' }],
  ])('reports %s', async (_what, answer, expected) => {
    const service = await scripted(() => answer);
    expect(await routeTo(service.url).send('a.b.c', never)).toMatchObject(expected);
  });

  it('reports how much the clock of the service differs', async () => {
    const service = await simulator();
    for (const seconds of [-7200, 0, 7200]) {
      service.clockOffsetSeconds = seconds;
      const { clockSkewMs = Infinity } = await routeTo(service.url).send('a.b.c', never);
      expect(Math.abs(clockSkewMs / 1000 - seconds)).toBeLessThan(60);
    }
  });

  it('reports a service that is not there', async () => {
    const service = await simulator();
    await service.goDown();
    expect(await routeTo(service.url).send('a.b.c', never)).toEqual({ reason: 'ECONNREFUSED' });
  });
});
