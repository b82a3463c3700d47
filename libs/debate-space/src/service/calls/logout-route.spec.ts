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

  it.each<[string, ScriptedAnswer, object]>([
    ['400', { status: 400 }, { status: 400 }],
    [
      'a web page, whatever the status',
      { status: 403, body: '\uFEFF <!doctype html><p>Forbidden' },
      { status: 403, contradiction: 'a web page' },
    ],
    ['success: false', { body: { success: false } }, { status: 200, contradiction: 'success: false' }],
    ['429', { status: 429, headers: { 'retry-after': '7' } }, { status: 429, retryAfterMs: 7000 }],
    ['a reset', 'reset', { reason: 'ECONNRESET' }],
    ['silence', 'silence', { reason: 'TIMEOUT' }],
  ])('reports %s', async (_what, answer, expected) => {
    const service = await scripted(() => answer);
    expect(await routeTo(service.url).send('a.b.c', never)).toMatchObject(expected);
  });

  it.each([-7200, 0, 7200])('reports a clock that is %d s off', async (clockOffsetSeconds) => {
    const service = await simulator({ clockOffsetSeconds });
    const { clockSkewMs = Infinity } = await routeTo(service.url).send('a.b.c', never);
    expect(Math.abs(clockSkewMs / 1000 - clockOffsetSeconds)).toBeLessThan(60);
  });

  it('reports a service that is not there', async () => {
    const service = await simulator();
    await service.goDown();
    expect(await routeTo(service.url).send('a.b.c', never)).toEqual({ reason: 'ECONNREFUSED' });
  });
});
