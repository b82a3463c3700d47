import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  StorageError,
  type ErasureProgress,
} from 'nestjs-debate-space';
import { filter, firstValueFrom, lastValueFrom, switchMap, timer } from 'rxjs';
import { erasurePath } from '../../sample-app/src/admin/erasure-path.js';
import { UploadedLists } from '../../sample-app/src/admin/uploaded-lists.js';
import type { Browser } from '../../sample-app/src/demo/browser.js';
import { Sessions } from '../../sample-app/src/session/sessions.js';
import { DEMO_PASSWORD } from '../../sample-app/src/login/demo-users.js';
import { RunningSampleApp } from 'debate-space-fixtures/running-sample-app.js';

let sim: DebateSpaceSimulator;
let app: NestExpressApplication;
let host: RunningSampleApp;

beforeEach(async () => {
  host = await RunningSampleApp.start();
  ({ app, sim } = host);
});

afterEach(async () => {
  await host.close();
});

const visitor = (): Browser => host.browser();
const loggedIn = (uid: string): Promise<Browser> => host.loggedIn(uid);

async function json(response: Response): Promise<unknown> {
  return response.json();
}

describe('a login', () => {
  it('brings the form back after a wrong password, with the user name', async () => {
    const ada = visitor();
    const response = await ada.logIn('ada', 'wrong');
    expect(response.status).toBe(401);
    const page = await response.text();
    expect(page).toContain('Wrong user name or password.');
    expect(page).toContain('name="username" value="ada"');
    expect(sim.debate.signedIn()).toEqual([]);
  });
});

describe('the sample app', () => {
  it('refuses forms without the token of the session, and sends nothing to the service', async () => {
    const ada = await loggedIn('ada');
    for (const path of ['/logout', '/me/anonymize', '/me/delete', '/admin/outbox/x/retry']) {
      const response = await ada.submitWithoutToken(path);
      expect([path, response.status]).toEqual([path, 403]);
      expect(await response.text()).toContain('This form is no longer valid.');
    }
    expect(await ada.open('/')).toContain('You are logged in as Ada');
    expect(sim.received.count).toBe(0);
  });

  it('leads a user whose session has expired from a form to the login', async () => {
    const admin = await loggedIn('admin');
    await app.get(Sessions).endAllOf('admin');
    for (const path of ['/logout', '/me/delete', '/admin/outbox/x/retry']) {
      const response = await admin.submitWithoutToken(path, { _csrf: 'of the expired session' });
      expect([path, response.status]).toEqual([path, 401]);
      const page = await response.text();
      expect(page).toContain('You have been logged out. Log in again.');
      expect(page).toContain('<form method="post" action="/login">');
    }
    const response = await admin.upload('/admin/erasures', { mode: 'delete' }, new File(['uid'], 'x.csv'));
    expect(await response.text()).toContain('You have been logged out. Log in again.');
  });

  it('brings a login form back that was open for too long', async () => {
    const response = await visitor().submitWithoutToken('/login', {
      username: 'ada',
      password: DEMO_PASSWORD,
    });
    expect(response.status).toBe(403);
    const page = await response.text();
    expect(page).toContain('This page was open for too long. Log in again.');
    expect(page).toContain('value="ada"');
  });

  it('leads anyone who is not logged in to the login', async () => {
    const response = await visitor().request('/');
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login']);
  });

  it('leads a visitor who logs in to the page that was wanted', async () => {
    const admin = visitor();
    const response = await admin.request('/admin/users?page=2');
    expect(response.headers.get('location')).toBe('/login?to=%2Fadmin%2Fusers%3Fpage%3D2');
    const form = await admin.open('/admin/users?page=2');
    expect(form).toContain('Log in to continue.');
    const fields = { username: 'admin', password: DEMO_PASSWORD, to: '/admin/users?page=2' };
    expect((await admin.submit('/login', fields)).headers.get('location')).toBe('/admin/users?page=2');
    expect((await admin.request('/login?to=%2Fme')).headers.get('location')).toBe('/me');
  });

  it('leads to the start page after a login that should lead to another site', async () => {
    for (const to of [
      'https://example.org/',
      '//example.org/',
      '/\\example.org/',
      '/.//example.org/',
      '/login',
      '',
    ]) {
      const fields = { username: 'ada', password: DEMO_PASSWORD, to };
      const response = await visitor().submit('/login', fields);
      expect([to, response.headers.get('location')]).toEqual([to, '/']);
    }
  });

  it('says on a failed page what is wrong, and leads on', async () => {
    const ada = await loggedIn('ada');
    expect(await ada.open('/nowhere')).toContain('>Page not found</h1>');
    expect(await ada.open('/admin')).toContain('>Administrators only</h1>');
    const receipt = await ada.open('/receipts/123');
    expect(receipt).toContain('This receipt does not exist, or its address is incomplete.');
    await sim.goDown();
    const page = await ada.open('/me/data');
    expect(page).toContain('>The debate space is unavailable</h1>');
    expect(page).toContain('<a href="/me/data">Try again</a>');
  });

  it('leads from a refused form back to its page, unless another site has sent it', async () => {
    const ada = await loggedIn('ada');
    const refused = async (referer: string): Promise<string> =>
      (await ada.request('/me/delete', { method: 'POST', headers: { referer } })).text();
    expect(await refused(`${host.url}/me`)).toContain('<a href="/me">Back to the form</a>');
    expect(await refused('https://example.org/me')).not.toContain('Back to the form');
  });

  it('refuses an erasure to anyone who is not logged in', async () => {
    expect((await visitor().submit('/me/delete')).status).toBe(401);
    expect(sim.received.count).toBe(0);
  });

  it('refuses programs with JSON', async () => {
    const response = await visitor().request('/admin/users', { headers: { Accept: '*/*' } });
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect(await json(response)).toEqual({
      title: 'Unauthorized',
      status: 401,
      detail: 'Please log in first.',
    });
  });

  it('refuses the administration to members', async () => {
    const ada = await loggedIn('ada');
    for (const path of [
      '/admin',
      '/admin/users',
      '/admin/erasures',
      '/admin/erasure?reference=x',
      '/admin/erasure/events?reference=x',
      '/admin/erasure/receipts?reference=x',
      '/admin/outbox',
    ]) {
      expect([path, (await ada.request(path)).status]).toEqual([path, 403]);
      expect([path, (await visitor().request(path)).status]).toEqual([path, 303]);
    }
    for (const path of ['erasures', 'erasures/dry-run', 'erasure/pause', 'erasure/retry', 'erasure/cancel'])
      expect([path, (await ada.submit(`/admin/${path}?reference=x`)).status]).toEqual([path, 403]);
    expect(sim.received.count).toBe(0);
  });
});

describe('the user list', () => {
  it('is a page in browsers, with links to the pages beside it', async () => {
    const admin = await loggedIn('admin');
    const page = await admin.open('/admin/users?page=2&per_page=1');
    expect(page).toContain('Page 2 of 4.');
    expect(page).toContain('ben@example.org');
    expect(page).toContain('rel="prev" href="/admin/users?page=1&amp;per_page=1"');
    expect(page).toContain('rel="next" href="/admin/users?page=3&amp;per_page=1"');
    const behind = await admin.open('/admin/users?page=99&per_page=3');
    expect(behind).toContain('No users on page 99.');
    expect(behind).toContain('<a href="/admin/users?page=2&amp;per_page=3">Page 2, the last one</a>');
    expect(behind).not.toContain('<table>');
  });

  it('finds a user by the user name', async () => {
    const admin = await loggedIn('admin');
    const found = async (uid: string): Promise<string> =>
      (await admin.submit('/admin/users/find', { uid })).text();
    expect(await found(' ben ')).toContain('ben@example.org');
    expect(await found('nobody')).toContain('Not found: the debate space has no user &quot;nobody&quot;.');
    for (const uid of ['..', '']) expect(await found(uid)).toContain('Not found: ');
    expect((await (await loggedIn('ada')).submit('/admin/users/find', { uid: 'ben' })).status).toBe(403);
  });

  it('refuses pages that are no numbers', async () => {
    const admin = await loggedIn('admin');
    for (const query of ['page=0', 'page=x', 'page=1.5', 'per_page=', 'per_page=101']) {
      const response = await admin.request(`/admin/users?${query}`);
      expect([query, response.status]).toEqual([query, 400]);
    }
    expect(sim.received.count).toBe(0);
  });
});

describe('erasure', () => {
  /** Asks for it, and leads to the receipt. */
  async function erased(uid: string, wish: 'anonymize' | 'delete'): Promise<[Browser, string]> {
    const browser = await loggedIn(uid);
    const response = await browser.submit(`/me/${wish}`, { confirmation: uid });
    expect(response.status).toBe(303);
    return [browser, response.headers.get('location') ?? ''];
  }

  function over(receipt: string): Promise<ErasureProgress> {
    return lastValueFrom(app.get(DebateSpaceErasures).progress(receipt.replace('/receipts/', '')));
  }

  it('asks for nothing when the user types another name', async () => {
    const ada = await loggedIn('ada');
    for (const fields of [
      { confirmation: 'Ada' },
      { confirmation: 'ada ' },
      { confirmation: '' },
      undefined,
    ]) {
      const response = await ada.submit('/me/delete', fields);
      expect(response.status).toBe(422);
      expect(await response.text()).toContain('This is not your user name.');
    }
    expect(await ada.open('/')).toContain('You are logged in as Ada');
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  });

  it('says on the receipt when the debate space did not know the user', async () => {
    sim.users.delete('ada');
    const [ada, receipt] = await erased('ada', 'anonymize');
    await over(receipt);
    expect(await ada.open(receipt)).toContain('The debate space had no data about you on ');
  });

  it('is vetoed for administrators, and the receipt says why', async () => {
    const [admin, receipt] = await erased('admin', 'delete');
    await over(receipt);
    const page = await admin.open(receipt);
    expect(page).toContain('Your data was not deleted: administrators are not erased.');
    expect(page).toContain('not erased (administrators are not erased)');
    expect(sim.users.has('admin')).toBe(true);
  });

  it('says that it is unknown whether it was stored when the storage does not answer, and names the reference', async () => {
    const asked = jest.spyOn(app.get(DebateSpaceErasures), 'request');
    asked.mockImplementationOnce(({ reference }) =>
      Promise.reject(new StorageError('internals', undefined, reference)),
    );
    const ada = await loggedIn('ada');
    const response = await ada.submit('/me/delete', { confirmation: 'ada' });
    const [{ reference = '' } = {}] = asked.mock.lastCall ?? [];
    const page = await response.text();
    expect(response.status).toBe(503);
    expect(page).toContain(`It is unknown whether your request was stored. Its reference is ${reference}.`);
    expect(page).toContain(`/receipts/${reference}`);
    expect(page).not.toContain('internals');
    expect(await ada.open('/')).toContain('You are logged in as Ada');
  });

  it('shows visitors no erasure of an administrator', async () => {
    const request = { reference: 'leavers', mode: 'delete' } as const;
    await app.get(DebateSpaceErasures).requestMany(['ada'], request);
    expect((await visitor().request('/receipts/leavers')).status).toBe(404);
    expect((await visitor().request('/receipts/leavers/events')).status).toBe(404);
  });
});

describe('the erasure of many', () => {
  const leavers = { mode: 'delete', reference: 'leavers', confirmation: 'delete' };

  const file = (text: string): File => new File([text], 'leavers.csv');
  const list = file('uid\nada\nben\n');

  it('numbers the entries of a list that need a look', async () => {
    const admin = await loggedIn('admin');
    const fields = { ...leavers, column: 'id' };
    const list = file('name,id\nA,ada\n\nB,..\nC,nobody\n');
    const page = await (await admin.upload('/admin/erasures/dry-run', fields, list)).text();
    expect(page).toContain('Entries that cannot be a user: 2 (counted without');
    expect(page).toContain('Entries not found: 3 (counted without');
  });

  it('takes the confirmation in British spelling', async () => {
    const admin = await loggedIn('admin');
    const fields = { ...leavers, mode: 'anonymize', confirmation: ['anonymi', 'se'].join('') };
    expect((await admin.upload('/admin/erasures', fields, list)).status).toBe(303);
  });

  it('takes one user name a line', async () => {
    const admin = await loggedIn('admin');
    const text = new File(['\uFEFFada\r\n\r\nben\r\n'], 'leavers.txt');
    const response = await admin.upload('/admin/erasures', leavers, text);
    expect([response.status, response.headers.get('location')]).toEqual([303, erasurePath('leavers')]);
    await lastValueFrom(app.get(DebateSpaceErasures).progress('leavers'));
    expect(sim.users.all().map(({ uid }) => uid)).toEqual(['cleo', 'admin']);
  });

  it('erases nobody when the file cannot be read, and says so without a name', async () => {
    const admin = await loggedIn('admin');
    for (const [text, problem] of [
      ['id\nada\n', 'The file has no column &quot;uid&quot;.'],
      ['uid,order,uid\nada,21,ben\n', 'The file has 2 columns &quot;uid&quot;.'],
      ['uid\nada\nx"ben"\n', 'Line 3 of the file cannot be read (INVALID_OPENING_QUOTE).'],
      ['uid,x\nada,1\nben\n', 'Line 3 of the file cannot be read (CSV_RECORD'],
      [Buffer.from('uid\nZo\xeb\n', 'latin1'), 'The file is not in UTF-8.'],
      ['uid\nada\n..\n', 'item 2: the uid has a dot segment'],
      ['uid\n', 'the list has no user'],
    ] as const) {
      const response = await admin.upload('/admin/erasures', leavers, new File([text], 'leavers.csv'));
      const page = await response.text();
      expect(page).toContain(problem);
      expect([response.status, page.includes('ben')]).toEqual([422, false]);
    }
    expect(sim.received.of('delete')).toEqual([]);
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  });

  it('brings the form back when something is missing or wrong', async () => {
    const admin = await loggedIn('admin');
    for (const [fields, files] of [
      [{ ...leavers, confirmation: 'anonymize' }, [list]],
      [{ ...leavers, mode: '' }, [list]],
      [{ ...leavers, reference: ' ' }, [list]],
      [leavers, []],
      [{ ...leavers, column: 'user' }, [list]],
    ] as const) {
      const response = await admin.upload('/admin/erasures', fields, ...files);
      expect(response.status).toBe(422);
      expect(await response.text()).toContain('Nothing was requested.');
    }
    expect(sim.received.count).toBe(0);
  });

  it('refuses the form without the token of the session', async () => {
    const body = new FormData();
    body.append('list', list);
    const response = await (await loggedIn('admin')).request('/admin/erasures', { method: 'POST', body });
    expect(response.status).toBe(403);
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  });

  it('keeps no file, whatever becomes of the request', async () => {
    const { folder } = app.get(UploadedLists);
    const admin = await loggedIn('admin');
    for (const fields of [leavers, { ...leavers, confirmation: '' }]) {
      await admin.upload('/admin/erasures', fields, list);
      expect(await readdir(folder)).toEqual([]);
    }
    await app.close();
    await expect(readdir(folder)).rejects.toThrow('ENOENT');
  });

  it('says that it is unknown whether it was stored when the storage does not answer, and names the reference', async () => {
    const asked = jest.spyOn(app.get(DebateSpaceErasures), 'requestMany');
    asked.mockRejectedValueOnce(new StorageError('internals', undefined, 'leavers'));
    const admin = await loggedIn('admin');
    const response = await admin.upload('/admin/erasures', leavers, list);
    expect(response.status).toBe(503);
    expect(await response.text()).toMatch(
      /unknown whether your request was stored\. Its reference is [^.]+\..*nobody is erased twice/,
    );
  });

  it('has no page for an unknown reference', async () => {
    const admin = await loggedIn('admin');
    for (const part of [undefined, 'events', 'receipts']) {
      expect((await admin.request(erasurePath('nothing', part))).status).toBe(404);
    }
    for (const query of ['', '?reference=', '?reference=x&reference=y']) {
      expect((await admin.request(`/admin/erasure${query}`)).status).toBe(404);
    }
  });

  it('has no stream for an unknown reference, when the storage takes its time', async () => {
    const admin = await loggedIn('admin');
    const erasures = app.get(DebateSpaceErasures);
    const progress = erasures.progress.bind(erasures);
    const later = (reference: string) => timer(50).pipe(switchMap(() => progress(reference)));
    jest.spyOn(erasures, 'progress').mockImplementation(later);
    expect((await admin.request(erasurePath('nothing', 'events'))).status).toBe(404);
  });
});

describe('the outbox', () => {
  async function parked(): Promise<Browser> {
    sim.faults.add({ operation: 'logout', kind: 'status', status: 403, times: 1 });
    const parking = firstValueFrom(
      app.get(DebateSpaceEvents).events$.pipe(filter(({ type }) => type === 'logout-parked')),
    );
    await (await loggedIn('ada')).submit('/logout');
    await parking;
    return loggedIn('admin');
  }

  async function press(
    browser: Browser,
    button: 'retry' | 'discard',
    fields?: Record<string, string>,
  ): Promise<Response> {
    const [, path = ''] =
      new RegExp(`action="(/admin/outbox/[^"]+/${button})"`).exec(await browser.open('/admin/outbox')) ?? [];
    return browser.submit(path, fields);
  }

  it('shows what is parked, with the hint, and sends it again', async () => {
    const admin = await parked();
    const page = await admin.open('/admin/outbox');
    expect(page).toContain('Logout of <code>ada</code>');
    expect(page).toContain('Hint:');
    expect(page.match(/<button class="main"/g)).toHaveLength(1);
    expect(page).toContain('Debate space: no outage detected');
    expect(page).toMatch(/The user was removed from the session at .* after 1 attempt, the last one: 403/);
    expect(page).not.toContain('user-removed');
    expect((await press(admin, 'retry')).status).toBe(303);
    await sim.received.waitFor(({ accepted }) => accepted);
    expect(sim.received.logouts).toEqual(['ada']);
    expect(await admin.open('/admin/outbox')).toContain('Retrying the logout.');
  });

  it('discards what is parked, when that is confirmed', async () => {
    const admin = await parked();
    await press(admin, 'discard');
    expect(await admin.open('/admin/outbox')).toContain('Nothing was discarded: confirm it first.');
    expect(await app.get(DebateSpaceOutbox).stats()).toMatchObject({ parked: 1 });
    await press(admin, 'discard', { confirmed: 'yes' });
    expect(await admin.open('/admin/outbox')).toContain('Discarded. It will not be sent.');
    expect(await app.get(DebateSpaceOutbox).stats()).toMatchObject({ parked: 0, pending: 0 });
  });
});
