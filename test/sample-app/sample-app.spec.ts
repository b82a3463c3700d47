import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { DebateSpaceErasures, DebateSpaceEvents } from 'nestjs-debate-space';
import { filter, firstValueFrom, lastValueFrom } from 'rxjs';
import { Browser } from '../../sample-app/src/demo/browser.js';
import { startSampleApp, type RunningSampleApp } from './running-sample-app.js';

let host: RunningSampleApp;
beforeAll(async () => {
  host = await startSampleApp(6);
});
afterAll(() => host.close());
afterEach(() => {
  host.sim.faults.clear();
});

async function loggedIn(uid: string): Promise<Browser> {
  const browser = new Browser(host.url);
  await browser.logIn(uid);
  return browser;
}

const locationOf = (response: Response): string => response.headers.get('location') ?? '';

async function finished(reference: string): Promise<void> {
  await lastValueFrom(host.app.get(DebateSpaceErasures).progress(reference));
}

describe('the login of the sample app', () => {
  it('a visitor is sent to the login', async () => {
    const visitor = new Browser(host.url);
    for (const path of ['/', '/my-data.json', '/admin', '/admin/erasure/events?reference=x'])
      expect(locationOf(await visitor.request(path))).toBe('/login');
  });

  it.each([
    ['ada', 'wrong'],
    ['nobody', 'demo'],
  ])('%s does not get in with the password "%s"', async (uid, password) => {
    const visitor = new Browser(host.url);
    expect(locationOf(await visitor.logIn(uid, password))).toBe('/login');
    expect(await visitor.open('/')).toContain('Wrong user name or password.');
  });

  it('an unknown user name is compared with a password, too, so that both take as long', async () => {
    // The comparison with this hash throws.
    const config = { get: (name: string) => (name === 'MEMBERS' ? 'ada:$argon2id$broken' : '') };
    const { Accounts } = await import('../../sample-app/src/auth/accounts.js');
    await expect(new Accounts(config as never).authenticate('nobody', 'demo')).rejects.toThrow();
  });

  it('a login signs the user in to the debate space, and a logout ends both', async () => {
    const ada = await loggedIn('ada');
    expect(await ada.open('/')).toContain('You are logged in as <strong>ada</strong>');
    expect(host.sim.debate.isSignedIn('ada')).toBe(true);
    const told = host.sim.received.waitFor(({ uid }) => uid === 'ada');
    await ada.submit('/logout');
    await told;
    expect(host.sim.debate.isSignedIn('ada')).toBe(false);
    expect(locationOf(await ada.request('/'))).toBe('/login');
  });

  it('a user who cannot be signed in to the debate space is logged in here', async () => {
    await host.sim.goDown();
    const ada = await loggedIn('ada');
    await host.sim.comeBack();
    expect(await ada.open('/')).toContain('not signed in to the debate space: it does not answer.');
  });

  it('a form without the token of its session is refused', async () => {
    const ada = await loggedIn('ada');
    for (const path of ['/logout', '/erasure', '/login'])
      expect((await ada.submitWithoutToken(path, { mode: 'delete', confirmation: 'ada' })).status).toBe(403);
    expect(await ada.open('/')).toContain('You are logged in');
  });

  it('a request to another host name is refused', async () => {
    for (const [name, status] of [
      ['evil.example', 403],
      ['127.0.0.1.evil.example', 403],
      ['LOCALHOST', 200],
    ] as const) {
      const sent = request(new URL('/login', host.url), {
        headers: { host: name, 'x-forwarded-host': 'localhost', 'x-forwarded-for': '127.0.0.1' },
      });
      const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
      response.resume();
      expect([name, response.statusCode]).toEqual([name, status]);
    }
  });

  it('the session cookie is not for scripts and other sites, and secure behind HTTPS', async () => {
    const cookies = async (headers: Record<string, string>): Promise<string> =>
      (await fetch(new URL('/login', host.url), { headers })).headers.getSetCookie().join();
    expect(await cookies({})).toMatch(/HttpOnly; SameSite=Lax$/);
    expect(await cookies({ 'X-Forwarded-Proto': 'https' })).toMatch(/HttpOnly; Secure; SameSite=Lax$/);
  });

  it('only administrators see the administration', async () => {
    const ada = await loggedIn('ada');
    expect((await ada.request('/admin')).status).toBe(403);
    expect((await ada.submit('/admin/erasures')).status).toBe(403);
    expect(await (await loggedIn('admin')).open('/admin')).toContain('Erase a list of users');
  });
});

describe('my data in the sample app', () => {
  it('a user downloads the data of the debate space, as long as there is some', async () => {
    const ben = await loggedIn('ben');
    const response = await ben.request('/my-data.json');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; .*my-data\.json/);
    expect(await response.json()).toMatchObject({ uid: 'ben', email: 'ben@example.org' });
    const ada = await loggedIn('ada');
    host.sim.users.delete('ada');
    expect((await ada.request('/my-data.json')).status).toBe(404);
    host.sim.faults.add({ kind: 'status', status: 400 });
    expect((await ben.request('/my-data.json')).status).toBe(503);
  });

  it('a user who types another name is not erased', async () => {
    const ben = await loggedIn('ben');
    const answer = await ben.submit('/erasure', { mode: 'delete', confirmation: 'cleo' });
    expect([answer.status, await answer.text()]).toEqual([
      422,
      expect.stringContaining('This is not your user name.'),
    ]);
    expect((await ben.submit('/erasure', { mode: 'everything', confirmation: 'ben' })).status).toBe(400);
    expect(host.sim.users.has('ben')).toBe(true);
  });

  it('a user is deleted, logged out of all browsers, and gets a receipt that needs no login', async () => {
    const elsewhere = await loggedIn('cleo');
    const cleo = await loggedIn('cleo');
    const receipt = locationOf(await cleo.submit('/erasure', { mode: 'delete', confirmation: 'cleo' }));
    await finished(receipt.replace('/receipts/', ''));
    expect(host.sim.users.wasDeleted('cleo')).toBe(true);
    for (const browser of [cleo, elsewhere]) expect(locationOf(await browser.request('/'))).toBe('/login');
    const page = await new Browser(host.url).open(receipt);
    expect(page).toContain('Your data was deleted on');
    expect(page).not.toMatch(/\bcleo\b/i);
    const events = await (await fetch(new URL(`${receipt}/events`, host.url))).text();
    expect(events).toMatch(/"sentence":"Your data was deleted on .*\n\nevent: end\n/s);
  });

  it('a receipt that does not exist is not found', async () => {
    const visitor = new Browser(host.url);
    for (const reference of ['leavers', 'f3b1ff71-86f1-4c46-8a66-28b40bd39d58'])
      expect((await visitor.request(`/receipts/${reference}`)).status).toBe(404);
  });
});

describe('the administration of the sample app', () => {
  const form = { uids: 'member-001\nmember-002\nnobody\nadmin', mode: 'delete', reference: 'leavers' };

  it('a dry run counts the users of a list and keeps what was typed', async () => {
    const admin = await loggedIn('admin');
    const page = await (await admin.submit('/admin/erasures/dry-run', form)).text();
    expect(page).toContain('Different users</dt><dd>4<');
    expect(page).toContain('Not found: line 3');
    expect(page).toContain('value="leavers"');
    expect(host.sim.users.has('member-001')).toBe(true);
  });

  it.each([
    [{ confirmation: 'anonymize' }, 'To confirm, type: delete'],
    [{ mode: '', confirmation: 'delete' }, 'Choose what to do.'],
    [{ uids: ' ', confirmation: 'delete' }, 'Enter the users.'],
    [{ reference: '', confirmation: 'delete' }, 'Enter a reference.'],
    [{ uids: 'member-001\n..', confirmation: 'delete' }, 'item 2'],
  ])('a list with %j is refused: %s', async (change, mistake) => {
    const answer = await (await loggedIn('admin')).submit('/admin/erasures', { ...form, ...change });
    expect([answer.status, await answer.text()]).toEqual([422, expect.stringContaining(mistake)]);
  });

  it('a confirmed list is paused, resumed and finished, but for the administrator whom the app protects', async () => {
    const admin = await loggedIn('admin');
    await host.sim.goDown();
    const answer = await admin.submit('/admin/erasures', { ...form, confirmation: 'delete' });
    expect(locationOf(answer)).toBe('/admin?reference=leavers');
    await admin.submit('/admin/erasure/pause?reference=leavers');
    expect(await admin.open('/admin?reference=leavers')).toContain('Paused.');
    await host.sim.comeBack();
    await admin.submit('/admin/erasure/resume?reference=leavers');
    await finished('leavers');
    expect(await admin.open('/admin')).toContain('Done. The app vetoed 1 user.');
    expect(host.sim.users.wasDeleted('member-002')).toBe(true);
    const conflict = { ...form, mode: 'anonymize', confirmation: 'anonymize' };
    expect((await admin.submit('/admin/erasures', conflict)).status).toBe(422);
  });

  it('a list is canceled, and no one else has its reference', async () => {
    const admin = await loggedIn('admin');
    await host.sim.goDown();
    const list = { uids: 'member-003', mode: 'delete', reference: 'wrong', confirmation: 'delete' };
    await admin.submit('/admin/erasures', list);
    await admin.submit('/admin/erasure/pause?reference=wrong');
    await admin.submit('/admin/erasure/cancel?reference=wrong');
    await finished('wrong');
    await host.sim.comeBack();
    expect(await admin.open('/admin?reference=wrong')).toContain('Canceled.');
    expect(host.sim.users.has('member-003')).toBe(true);
    for (const path of ['/admin?reference=x', '/admin/erasure/events?reference=x'])
      expect((await admin.request(path)).status).toBe(404);
  });

  it('a parked logout is sent again or discarded', async () => {
    const { events$ } = host.app.get(DebateSpaceEvents);
    const admin = await loggedIn('admin');
    for (const action of ['retry', 'discard']) {
      host.sim.faults.add({ operation: 'logout', kind: 'status', status: 403, times: 1 });
      const parked = firstValueFrom(events$.pipe(filter(({ type }) => type === 'logout-parked')));
      await (await loggedIn('ben')).submit('/logout');
      await parked;
      const [path = ''] = new RegExp(`/admin/logouts/[^/]+/${action}`).exec(await admin.open('/admin')) ?? [];
      await admin.submit(path);
      expect(await admin.open('/admin')).toContain('Parked</dt><dd>0<');
    }
  });
});
