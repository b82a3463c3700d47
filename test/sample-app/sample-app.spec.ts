import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  AbortedError,
  AuthenticationError,
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  ErasureError,
  InvalidArgumentError,
  InvalidUidError,
  NetworkError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  StorageError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  UserNotFoundError,
  type ErasureProgress,
} from 'nestjs-debate-space';
import { filter, firstValueFrom, lastValueFrom, switchMap, timer } from 'rxjs';
import { erasurePath } from '../../sample-app/src/admin/erasure-path.js';
import { erasureView } from '../../sample-app/src/erasure/erasure-view.js';
import { UploadedLists } from '../../sample-app/src/admin/uploaded-lists.js';
import type { Browser } from '../../sample-app/src/demo/browser.js';
import { Sessions } from '../../sample-app/src/session/sessions.js';
import { DEMO_PASSWORD } from '../../sample-app/src/login/demo-users.js';
import { debateSpaceProblem } from '../../sample-app/src/problems/debate-space-problem.js';
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

describe('logging in and out', () => {
  it('signs the user in to the debate, and out of it with the logout here', async () => {
    const ada = await loggedIn('ada');
    expect(await ada.open('/')).toContain('You are logged in as Ada');
    expect(sim.debate.isSignedIn('ada')).toBe(true);

    const response = await ada.submit('/logout');
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login']);
    expect(await ada.open('/')).toContain('You are logged out.');
    await sim.received.waitFor('logout');
    expect(sim.received.logouts).toEqual(['ada']);
    expect(sim.debate.isSignedIn('ada')).toBe(false);
  });

  it('leaves the debate alone when the same user logs in again', async () => {
    const ada = await loggedIn('ada');
    const first = ada.cookie;
    await ada.logIn('ada', DEMO_PASSWORD);
    expect(ada.cookie).not.toBe(first);
    await app.close(); // with every verdict fallen and everything sent
    expect(sim.received.logouts).toEqual([]);
    expect(sim.debate.isSignedIn('ada')).toBe(true);
  });

  it('brings the form back after a wrong password, with the user name', async () => {
    const ada = visitor();
    const response = await ada.logIn('ada', 'wrong');
    expect(response.status).toBe(401);
    const page = await response.text();
    expect(page).toContain('Wrong user name or password.');
    expect(page).toContain('name="username" value="ada"');
    expect(sim.debate.signedIn()).toEqual([]);
  });

  it('works while the debate space is down, and says what does not', async () => {
    await sim.goDown();
    const ada = await loggedIn('ada');
    expect(await ada.open('/')).toContain('not signed in to the debate space: it does not answer.');
  });
});

describe('the sample app', () => {
  it.each(['/logout', '/me/anonymize', '/me/delete', '/admin/outbox/x/retry'])(
    'refuses POST %s without the token of the session, and sends nothing to the service',
    async (path) => {
      const ada = await loggedIn('ada');
      const response = await ada.submitWithoutToken(path);
      expect(response.status).toBe(403);
      expect(await response.text()).toContain('This form is no longer valid.');
      expect(await ada.open('/')).toContain('You are logged in as Ada');
      expect(sim.received.count).toBe(0);
    },
  );

  it.each(['/logout', '/me/delete', '/admin/outbox/x/retry'])(
    'leads a user whose session has expired from the form %s to the login',
    async (path) => {
      const ada = await loggedIn('ada');
      await app.get(Sessions).endAllOf('ada');
      const response = await ada.submitWithoutToken(path, { _csrf: 'of the expired session' });
      expect(response.status).toBe(401);
      const page = await response.text();
      expect(page).toContain('You have been logged out. Log in again.');
      expect(page).toContain('<form method="post" action="/login">');
    },
  );

  it('leads a user whose session has expired from the form with a file to the login', async () => {
    const admin = await loggedIn('admin');
    await app.get(Sessions).endAllOf('admin');
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

  it.each([
    'https://example.org/',
    '//example.org/',
    '/\\example.org/',
    '/.//example.org/',
    'javascript:alert(1)',
    '/login',
    '',
  ])('leads to the start page after a login that should lead to %p', async (to) => {
    const fields = { username: 'ada', password: DEMO_PASSWORD, to };
    expect((await visitor().submit('/login', fields)).headers.get('location')).toBe('/');
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

  it.each([
    '/admin',
    '/admin/users',
    '/admin/erasures',
    '/admin/erasure?reference=x',
    '/admin/erasure/events?reference=x',
    '/admin/erasure/receipts?reference=x',
    '/admin/outbox',
  ])('refuses %s to members', async (path) => {
    expect((await (await loggedIn('ada')).request(path)).status).toBe(403);
    expect((await visitor().request(path)).status).toBe(303);
    expect(sim.received.count).toBe(0);
  });

  it.each([
    'erasures',
    'erasures/dry-run',
    'erasure/pause',
    'erasure/resume',
    'erasure/retry',
    'erasure/cancel',
  ])('refuses POST /admin/%s to members', async (path) => {
    expect((await (await loggedIn('ada')).submit(`/admin/${path}?reference=x`)).status).toBe(403);
  });
});

describe('the user list', () => {
  const JSON_ONLY = { headers: { Accept: 'application/json' } };

  it('comes page by page to administrators', async () => {
    const admin = await loggedIn('admin');
    const response = await admin.request('/admin/users?page=2&per_page=3', JSON_ONLY);
    expect(await json(response)).toMatchObject({
      users: [{ uid: 'admin' }],
      page: 2,
      perPage: 3,
      total: 4,
      totalPages: 2,
    });
  });

  it('is a page in browsers, with links to the pages beside it', async () => {
    const page = await (await loggedIn('admin')).open('/admin/users?page=2&per_page=1');
    expect(page).toContain('Page 2 of 4.');
    expect(page).toContain('ben@example.org');
    expect(page).toContain('rel="prev" href="/admin/users?page=1&amp;per_page=1"');
    expect(page).toContain('rel="next" href="/admin/users?page=3&amp;per_page=1"');
  });

  it('leads from a page behind the last one to the last one', async () => {
    const page = await (await loggedIn('admin')).open('/admin/users?page=99&per_page=3');
    expect(page).toContain('No users on page 99.');
    expect(page).toContain('<a href="/admin/users?page=2&amp;per_page=3">Page 2, the last one</a>');
    expect(page).not.toContain('<table>');
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

  it.each(['page=0', 'page=x', 'page=1.5', 'per_page=', 'per_page=101'])('refuses ?%s', async (query) => {
    const response = await (await loggedIn('admin')).request(`/admin/users?${query}`);
    expect(response.status).toBe(400);
    expect(sim.received.count).toBe(0);
  });
});

describe('the download of my data', () => {
  it('is a file with the record of the debate space', async () => {
    const response = await (await loggedIn('ada')).request('/me/data');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment; filename=.+\.json$/);
    expect(await json(response)).toMatchObject({ uid: 'ada', email: 'ada@example.org' });
  });

  it('says so when the debate space has none', async () => {
    const ada = await loggedIn('ada');
    sim.users.delete('ada');
    const response = await ada.request('/me/data');
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('The debate space has no data about you');
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

  it('anonymizes and keeps the contributions', async () => {
    const contributions = sim.users.get('ada')?.contributions;
    const [ada, receipt] = await erased('ada', 'anonymize');
    expect(await over(receipt)).toMatchObject({ state: 'done', done: 1 });
    expect(sim.users.has('ada')).toBe(false);
    expect(sim.users.all()[0]).toMatchObject({ uid: null, first_name: null, email: null, contributions });
    expect(await ada.open('/')).toContain('>Log in</h1>');
  });

  it('deletes with all contributions, and for ever', async () => {
    const [ada, receipt] = await erased('ada', 'delete');
    await over(receipt);
    expect(sim.users.wasDeleted('ada')).toBe(true);
    await ada.logIn('ada', DEMO_PASSWORD);
    expect(await ada.open('/')).toContain('not signed in to the debate space: the user was deleted there.');
  });

  it.each(['Ada', 'ada ', '', undefined])('asks for nothing when the user types %p', async (confirmation) => {
    const ada = await loggedIn('ada');
    const response = await ada.submit('/me/delete', confirmation === undefined ? {} : { confirmation });
    expect(response.status).toBe(422);
    expect(await response.text()).toContain('This is not your user name.');
    expect(await ada.open('/')).toContain('You are logged in as Ada');
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  });

  it('is kept while the debate space is down, and carried out when it is back', async () => {
    await sim.goDown();
    const [ada, receipt] = await erased('ada', 'anonymize');
    expect(await ada.open(receipt)).toMatch(
      /as soon as possible|You can close this page|tries again automatically/,
    );
    await sim.comeBack();
    await over(receipt);
    expect(sim.users.has('ada')).toBe(false);
  });

  it('leaves a receipt, which needs no login and names nobody', async () => {
    const [, receipt] = await erased('ada', 'delete');
    await over(receipt);
    const page = await visitor().open(receipt);
    expect(page).toContain('Receipt of an erasure');
    expect(page).toMatch(/Your data was deleted on \d+ \w+ \d{4}, /);
    expect(page).toContain('erased (answer 200)');
    expect(page).not.toMatch(/\bada\b/i);
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

  it('takes a file, and leads to the page that shows how far it is', async () => {
    const admin = await loggedIn('admin');
    const response = await admin.upload('/admin/erasures', leavers, list);
    expect([response.status, response.headers.get('location')]).toEqual([303, erasurePath('leavers')]);
    await lastValueFrom(app.get(DebateSpaceErasures).progress('leavers'));
    expect(sim.users.all().map(({ uid }) => uid)).toEqual(['cleo', 'admin']);
    expect(await admin.open(erasurePath('leavers'))).toContain('Done.');

    const receipts = await (await admin.request(erasurePath('leavers', 'receipts'))).text();
    expect(receipts.trim().split('\n')).toHaveLength(2);
    expect(receipts).not.toMatch(/\b(ada|ben)\b/);
    expect(receipts).toContain('"requestedBy":"administration"');
  });

  it('counts first, and does nothing', async () => {
    const admin = await loggedIn('admin');
    const response = await admin.upload('/admin/erasures/dry-run', leavers, file('uid\nada\nada\nnobody\n'));
    expect(response.status).toBe(200);
    const figures = [...(await response.text()).matchAll(/<dt>(.+?)<\/dt><dd>(\d+)<\/dd>/g)];
    expect(Object.fromEntries(figures.map(([, name, number]) => [name, Number(number)]))).toMatchObject({
      Entries: 3,
      'Different users': 2,
      'Entries that repeat one': 1,
      'Registered in the debate space': 1,
      'Not found': 1,
    });
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  });

  it('numbers the entries of a list that need a look', async () => {
    const admin = await loggedIn('admin');
    const fields = { ...leavers, column: 'id' };
    const list = file('name,id\nA,ada\n\nB,..\nC,nobody\n');
    const page = await (await admin.upload('/admin/erasures/dry-run', fields, list)).text();
    expect(page).toContain('Entries that cannot be a user: 2 (counted without');
    expect(page).toContain('Entries not found: 3 (counted without');
  });

  it('numbers ten entries at most, the others behind a click, and says on the button how many users it erases', async () => {
    const admin = await loggedIn('admin');
    const nobodies = Array.from({ length: 120 }, (_, index) => `nobody-${index}`);
    const text = ['uid', 'ada', 'ben', ...nobodies].join('\n');
    const page = await (await admin.upload('/admin/erasures/dry-run', leavers, file(text))).text();
    expect(page).toContain('Entries not found: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, and 110 more (');
    expect(page).toContain('<summary>The first 100</summary><p>3, 4, 5,');
    expect(page).toContain('<span data-verb>Delete</span> <span id="erase-number">122 users</span>');
  });

  it('takes the confirmation in British spelling', async () => {
    const admin = await loggedIn('admin');
    const fields = { ...leavers, mode: 'anonymize', confirmation: ['anonymi', 'se'].join('') };
    expect((await admin.upload('/admin/erasures', fields, list)).status).toBe(303);
  });

  it('brings the form back filled in, with the name of the file', async () => {
    const admin = await loggedIn('admin');
    const fields = { ...leavers, column: 'id', confirmation: 'wrong' };
    const page = await (await admin.upload('/admin/erasures', fields, list)).text();
    expect(page).toContain('Choose <code>leavers.csv</code> again');
    for (const value of ['id', 'leavers', 'wrong']) expect(page).toContain(`value="${value}"`);
    expect(page).toContain('value="delete" required checked');
  });

  it('names no state of the library in the list', async () => {
    const admin = await loggedIn('admin');
    await sim.goDown();
    await admin.upload('/admin/erasures', leavers, list);
    await admin.submit(erasurePath('leavers', 'cancel'));
    const page = await admin.open('/admin/erasures');
    expect(page).toMatch(/<td>canceled<\/td><td class="number">0 of 2</);
  });

  it('shows after a cancellation a bar that is not full, and how many users are not erased', async () => {
    const admin = await loggedIn('admin');
    await sim.goDown();
    await admin.upload('/admin/erasures', leavers, list);
    await admin.submit(erasurePath('leavers', 'pause'));
    await admin.submit(erasurePath('leavers', 'cancel'));
    const page = await admin.open(erasurePath('leavers'));
    expect(page).toContain('Canceled: 0 done, 2 not erased.');
    expect(page).toContain('<progress id="bar" max="2" value="0"');
  });

  it('takes one user name a line', async () => {
    const admin = await loggedIn('admin');
    const text = new File(['\uFEFFada\r\n\r\nben\r\n'], 'leavers.txt');
    expect((await admin.upload('/admin/erasures', leavers, text)).status).toBe(303);
    await lastValueFrom(app.get(DebateSpaceErasures).progress('leavers'));
    expect(sim.users.all().map(({ uid }) => uid)).toEqual(['cleo', 'admin']);
  });

  it.each([
    ['has no such column', 'id\nada\n', 'The file has no column &quot;uid&quot;.'],
    ['has it twice', 'uid,order,uid\nada,21,ben\n', 'The file has 2 columns &quot;uid&quot;.'],
    [
      'has a broken quote',
      'uid\nada\nx"ben"\n',
      'Line 3 of the file cannot be read (INVALID_OPENING_QUOTE).',
    ],
    ['has a row of another length', 'uid,x\nada,1\nben\n', 'Line 3 of the file cannot be read (CSV_RECORD'],
    ['is in another encoding', Buffer.from('uid\nZo\xeb\n', 'latin1'), 'The file is not in UTF-8.'],
    ['has what is no user name', 'uid\nada\n..\n', 'item 2: the uid has a dot segment'],
    ['has no user', 'uid\n', 'the list has no user'],
  ])('erases nobody when the file %s, and says so without a name', async (_case, text, problem) => {
    const admin = await loggedIn('admin');
    const response = await admin.upload('/admin/erasures', leavers, new File([text], 'leavers.csv'));
    expect(response.status).toBe(422);
    const page = await response.text();
    expect(page).toContain(problem);
    expect(page).not.toContain('ben');
    expect(sim.received.of('delete')).toEqual([]);
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  });

  it.each([
    ['the confirmation is of another kind', { ...leavers, confirmation: 'anonymize' }, [list]],
    ['nothing is chosen', { ...leavers, mode: '' }, [list]],
    ['it has no reference', { ...leavers, reference: ' ' }, [list]],
    ['there is no file', leavers, []],
    ['the file has no such column', { ...leavers, column: 'user' }, [list]],
  ])('brings the form back when %s', async (_case, fields, files) => {
    const admin = await loggedIn('admin');
    const response = await admin.upload('/admin/erasures', fields, ...files);
    expect(response.status).toBe(422);
    expect(await response.text()).toContain('Nothing was requested.');
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

  it('is paused, resumed and canceled', async () => {
    const admin = await loggedIn('admin');
    await sim.goDown();
    await admin.upload('/admin/erasures', leavers, list);
    const erasures = app.get(DebateSpaceErasures);
    await admin.submit(erasurePath('leavers', 'pause'));
    expect(await erasures.status('leavers')).toMatchObject({ state: 'paused' });
    await admin.submit(erasurePath('leavers', 'resume'));
    expect((await erasures.status('leavers')).state).not.toBe('paused');
    await admin.submit(erasurePath('leavers', 'cancel'));
    expect(await erasures.status('leavers')).toMatchObject({ canceled: 2, state: 'canceled' });
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

describe('the sentence about an erasure', () => {
  const counts = { total: 2, done: 0, notFound: 0, vetoed: 0, canceled: 0, failed: 0, waiting: 0 };
  const status = {
    reference: 'r',
    mode: 'delete',
    complete: true,
    requestedAt: new Date(0),
    ...counts,
  } as const;

  it('does not ask for the list of an erasure that was canceled before the list was read to its end', () => {
    const canceled = { complete: false, canceled: 2, finishedAt: new Date(1), state: 'canceled' } as const;
    expect(erasureView({ ...status, ...canceled }).sentence).toBe('Canceled: 0 done, 2 not erased.');
  });

  it('asks for the rest of a list that was not read to its end', () => {
    const view = erasureView({ ...status, complete: false, waiting: 2, state: 'waiting' });
    expect([view.state, view.stateText]).toEqual(['unread', 'list not read to its end']);
    expect(view.sentence).toContain('Upload it again');
  });

  it('does not say that those who failed are still being tried', () => {
    const { sentence } = erasureView({ ...status, failed: 2, state: 'overdue' });
    expect(sentence).toBe('2 users are not erased: every attempt failed. Fix the cause, then try again.');
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
    expect((await press(admin, 'retry')).status).toBe(303);
    await sim.received.waitFor(({ accepted }) => accepted);
    expect(sim.received.logouts).toEqual(['ada']);
    expect(await admin.open('/admin/outbox')).toContain('Retrying the logout.');
  });

  it('names no state or reason of the library', async () => {
    const page = await (await parked()).open('/admin/outbox');
    expect(page).toMatch(/The user was removed from the session at .* after 1 attempt, the last one: 403/);
    expect(page).not.toContain('user-removed');
  });

  it('retries all that is parked', async () => {
    await parked();
    const admin = await parked();
    expect((await admin.submit('/admin/outbox/retry')).status).toBe(303);
    expect(await admin.open('/admin/outbox')).toContain('Retrying 2 logouts.');
    await sim.received.waitFor('logout', { count: 4 });
    expect(sim.received.logouts).toEqual(['ada', 'ada']);
  });

  it('discards nothing that is not confirmed', async () => {
    const admin = await parked();
    await press(admin, 'discard');
    expect(await admin.open('/admin/outbox')).toContain('Nothing was discarded: confirm it first.');
    expect(await app.get(DebateSpaceOutbox).stats()).toMatchObject({ parked: 1 });
  });

  it('discards what is parked', async () => {
    const admin = await parked();
    await press(admin, 'discard', { confirmed: 'yes' });
    expect(await admin.open('/admin/outbox')).toContain('Discarded. It will not be sent.');
    expect(await app.get(DebateSpaceOutbox).stats()).toMatchObject({ parked: 0, pending: 0 });
  });
});

describe('the answer to an error of the library', () => {
  const secret = 'internals';
  const details = { operation: 'deleteUser', outcome: 'refused', retryable: false, attempts: 1 } as const;

  it.each([
    [UserNotFoundError, 404],
    [InvalidUidError, 400],
    [InvalidArgumentError, 400],
    [RateLimitedError, 503],
    [AuthenticationError, 502],
    [PermissionError, 502],
    [RefusedError, 502],
    [UnexpectedResponseError, 502],
    [UnavailableError, 503],
    [NetworkError, 503],
    [TimeoutError, 504],
    [AbortedError, 503],
  ])('is for %p the status %d, without its message', (Kind, status) => {
    const problem = debateSpaceProblem(new Kind(secret, details));
    expect(problem.status).toBe(status);
    expect(JSON.stringify(problem)).not.toContain(secret);
  });

  it('is 503 when the storage does not answer, 404 for an unknown erasure, and 409 for a reference that is taken', () => {
    const codes = ['ERR_DEBATE_SPACE_UNKNOWN_ERASURE', 'ERR_DEBATE_SPACE_ERASURE_CONFLICT'] as const;
    const problems = [new StorageError(secret), ...codes.map((code) => new ErasureError(code, secret))];
    expect(problems.map((error) => debateSpaceProblem(error).status)).toEqual([503, 404, 409]);
    expect(debateSpaceProblem(new StorageError(secret)).detail).toContain(
      'It is unknown whether anything was stored.',
    );
  });

  it('to an erasure says that it is unknown whether it was stored, and names the reference', async () => {
    const asked = jest.spyOn(app.get(DebateSpaceErasures), 'request');
    asked.mockImplementationOnce(({ reference }) =>
      Promise.reject(new StorageError(secret, undefined, reference)),
    );
    const ada = await loggedIn('ada');
    const response = await ada.submit('/me/delete', { confirmation: 'ada' });
    const [{ reference = '' } = {}] = asked.mock.lastCall ?? [];
    const page = await response.text();
    expect(response.status).toBe(503);
    expect(page).toContain(`It is unknown whether your request was stored. Its reference is ${reference}.`);
    expect(page).toContain(`/receipts/${reference}`);
    expect(page).not.toContain(secret);
    expect(await ada.open('/')).toContain('You are logged in as Ada');
  });

  it('names a wait in whole seconds, a minute when the service named none for its limit', () => {
    const waiting = new UnavailableError(secret, { ...details, retryAfterMs: 1_200 });
    expect(debateSpaceProblem(waiting).retryAfterSeconds).toBe(2);
    expect(debateSpaceProblem(new RateLimitedError(secret, details)).retryAfterSeconds).toBe(60);
    expect(debateSpaceProblem(new UnavailableError(secret, details)).retryAfterSeconds).toBeUndefined();
  });
});
