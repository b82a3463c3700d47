import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { ConfigService } from '@nestjs/config';
import { Accounts } from '../../sample-app/src/login/accounts.js';
import { DEMO_PASSWORD, DEMO_USERS } from '../../sample-app/src/login/demo-users.js';
import { hashPassword } from '../../sample-app/src/login/password-hash.js';
import { RunningSampleApp } from 'debate-space-fixtures/running-sample-app.js';

const PASSWORD = 'correct horse battery staple';
const QUICK = { ln: 10, r: 8, p: 1 };

let host: RunningSampleApp | undefined;
let hash: string;

beforeAll(async () => {
  hash = await hashPassword(PASSWORD, QUICK);
});
afterEach(async () => {
  await host?.close();
  host = undefined;
  delete process.env.ADMINISTRATORS;
  delete process.env.MEMBERS;
  delete process.env.SIMULATOR_URL;
});

describe('the sample app in front of a real service', () => {
  async function start(environment: Record<string, string>): Promise<RunningSampleApp> {
    Object.assign(process.env, environment);
    return (host = await RunningSampleApp.startForRealService());
  }

  /** The same logins for all apps of this file: passport is one for the process, and asks the first app who a uid is. */
  const startWithLogins = (): Promise<RunningSampleApp> =>
    start({ ADMINISTRATORS: `eva:${hash}`, MEMBERS: ` tom:${hash}\n  a:b:${hash}` });

  it('shows no login and no password on its login page', async () => {
    const page = await (await startWithLogins()).browser().open('/login');
    expect(page).toContain('>Log in</h1>');
    for (const text of ['Demo logins', `<code>${DEMO_PASSWORD}</code>`, 'eva', hash]) {
      expect(page).not.toContain(text);
    }
  });

  it('lets in the users of the environment, with their passwords and their roles', async () => {
    const app = await startWithLogins();
    expect((await (await app.loggedIn('eva', PASSWORD)).request('/admin')).status).toBe(200);
    expect((await (await app.loggedIn('tom', PASSWORD)).request('/admin')).status).toBe(403);
    expect((await (await app.loggedIn('a:b', PASSWORD)).request('/')).status).toBe(200);
  });

  it('lets nobody in with a wrong password, an unknown name, or a demo login', async () => {
    const app = await startWithLogins();
    const wrong = [
      ['eva', `${PASSWORD} `],
      ['eva', hash],
      ['eva', ''],
      ['nobody', PASSWORD],
      ...DEMO_USERS.map(({ uid }) => [uid, DEMO_PASSWORD] as const),
    ] as const;
    for (const [uid, password] of wrong) {
      expect([uid, (await app.browser().logIn(uid, password)).status]).toEqual([uid, 401]);
    }
  });

  it('keeps its administrators from being erased', async () => {
    const app = await startWithLogins();
    const eva = await app.loggedIn('eva', PASSWORD);
    const receipt = (await eva.submit('/me/delete', { confirmation: 'eva' })).headers.get('location') ?? '';
    const events = await (await eva.request(`${receipt}/events`)).text();
    expect(events).toContain('administrators are not erased');
  });

  it.each([
    ['there is no login', {}, /^Nobody can log in: set ADMINISTRATORS, MEMBERS or both\./],
    ['a password is not hashed', { ADMINISTRATORS: `eva:${PASSWORD}` }, /^Login 1 of ADMINISTRATORS has no/],
    ['a password has no name', { MEMBERS: ':scrypt.10.8.1.x.y' }, /^Login 1 of MEMBERS has no/],
    ['the simulator is elsewhere', { SIMULATOR_URL: 'http://127.0.0.1:1' }, /^Nobody can log in/],
  ])('does not start when %s, and says what to set', async (_case, environment, message) => {
    const failure: unknown = await start(environment).catch((error: unknown) => error);
    expect(failure).toMatchObject({ name: 'StartError', message: expect.stringMatching(message) });
    expect(String(failure)).toContain('hint: a login is "<user name>:<password hash>"');
    expect(String(failure)).toContain('hash-password');
    expect(String(failure)).not.toContain('correct');
  });

  it('does not start when a user name is given twice', async () => {
    const twice = start({ ADMINISTRATORS: `eva:${hash}`, MEMBERS: `eva:${hash}` });
    await expect(twice).rejects.toThrow('ADMINISTRATORS and MEMBERS name a user twice.');
  });
});

it('the sample app has no demo logins for a service on another machine, even when SIMULATOR_URL names it', () => {
  const url = 'https://debate.example.org';
  expect(() => new Accounts(new ConfigService({ DEBATE_SPACE_AUTH_URL: url, SIMULATOR_URL: url }))).toThrow(
    'Nobody can log in',
  );
});

it('the sample app hashes the same password with another salt each time', async () => {
  expect(await hashPassword(PASSWORD, QUICK)).not.toBe(hash);
  expect(await hashPassword(PASSWORD)).toMatch(/^scrypt\.15\.8\.3\./);
});
