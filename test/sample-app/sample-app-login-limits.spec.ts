import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DEMO_PASSWORD } from '../../sample-app/src/login/demo-users.js';
import { RunningSampleApp } from 'debate-space-fixtures/running-sample-app.js';

describe('after failed logins', () => {
  const FAILURES = 5;
  let app: RunningSampleApp;

  beforeEach(async () => {
    process.env.TRUSTED_PROXY = 'loopback';
    app = await RunningSampleApp.start();
  });
  afterEach(async () => {
    await app.close();
  });

  /** What the app answers to a login that comes from this address. */
  async function logIn(
    address: string,
    username: string,
    password: string,
    path = '/login',
  ): Promise<Response> {
    const browser = app.browser();
    const [, token = ''] = /name="_csrf" value="([0-9a-f]+)"/.exec(await browser.open('/login')) ?? [];
    const body = new URLSearchParams({ username, password, _csrf: token });
    return browser.request(path, { method: 'POST', body, headers: { 'X-Forwarded-For': address } });
  }

  async function fail(times: number, address: string, username: string): Promise<void> {
    for (let failure = 0; failure < times; failure += 1) {
      expect((await logIn(address, username, 'wrong')).status).toBe(401);
    }
  }

  it('the user name is refused from that address, with the right password too, and the form says for how long', async () => {
    await fail(FAILURES, '192.0.2.1', 'ada');
    for (const path of ['/login', '/login/', '/LOGIN']) {
      const response = await logIn('192.0.2.1', 'ada', DEMO_PASSWORD, path);
      expect(response.status).toBe(429);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await response.text()).toMatch(/Too many failed logins\. Try again in 1\d minutes\./);
    }
    expect(app.sim.debate.signedIn()).toEqual([]);
  });

  it('the user still logs in from another address, and other users from the same one', async () => {
    await fail(FAILURES, '192.0.2.1', 'ada');
    expect((await logIn('192.0.2.2', 'ada', DEMO_PASSWORD)).status).toBe(303);
    expect((await logIn('192.0.2.1', 'ben', DEMO_PASSWORD)).status).toBe(303);
  });

  it('an IPv6 address of the same subnet is the same address', async () => {
    await fail(FAILURES, '2001:db8::1', 'ada');
    expect((await logIn('2001:db8::2', 'ada', DEMO_PASSWORD)).status).toBe(429);
  });

  it('an address that tries many user names is refused, and no other address is', async () => {
    for (let name = 0; name < 30; name += 1) await fail(1, '192.0.2.1', `user-${name}`);
    expect((await logIn('192.0.2.1', 'ada', DEMO_PASSWORD)).status).toBe(429);
    expect((await logIn('192.0.2.2', 'ada', DEMO_PASSWORD)).status).toBe(303);
  });

  it('logins that succeed are not counted', async () => {
    for (let login = 0; login <= FAILURES; login += 1) {
      expect((await logIn('192.0.2.1', 'ada', DEMO_PASSWORD)).status).toBe(303);
    }
  });

  it('many guesses at the same time are counted one by one', async () => {
    const guesses = Array.from({ length: 3 * FAILURES }, () => logIn('192.0.2.1', 'ada', 'wrong'));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(FAILURES);
  });

  it('a program gets the refusal as JSON', async () => {
    await fail(FAILURES, '192.0.2.1', 'ada');
    const browser = app.browser();
    const [, token = ''] = /name="_csrf" value="([0-9a-f]+)"/.exec(await browser.open('/login')) ?? [];
    const response = await browser.request('/login', {
      method: 'POST',
      body: new URLSearchParams({ username: 'ada', password: DEMO_PASSWORD, _csrf: token }),
      headers: { 'X-Forwarded-For': '192.0.2.1', Accept: 'application/json' },
    });
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect(await response.json()).toMatchObject({ status: 429, detail: expect.stringContaining('Too many') });
  });
});
