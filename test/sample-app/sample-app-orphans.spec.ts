import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { lastValueFrom } from 'rxjs';
import { chromium } from 'debate-space-fixtures/chromium.js';
import { RunningSampleApp } from 'debate-space-fixtures/running-sample-app.js';
import { sampleAppInChromium } from 'debate-space-fixtures/sample-app-in-chromium.js';
import { erasurePath } from '../../sample-app/src/admin/erasure-path.js';

const MEMBERS = 150;
const ACCOUNTS = ['ada', 'ben', 'cleo', 'admin'];
const form = { mode: 'delete', reference: 'orphans-2026', confirmation: 'delete' };

describe('the page of users without an account', () => {
  let sim: DebateSpaceSimulator;
  let app: NestExpressApplication;
  let host: RunningSampleApp;
  beforeEach(async () => {
    host = await RunningSampleApp.start(MEMBERS);
    ({ app, sim } = host);
  });
  afterEach(async () => {
    await host.close();
  });

  /** What the page was when it was looked at. */
  const seenIn = (page: string): string => /name="seen" value="(\w+)"/.exec(page)?.[1] ?? '';
  async function expectNothingRequested(): Promise<void> {
    for await (const erasure of app.get(DebateSpaceErasures).list()) expect(erasure).toBeUndefined();
  }

  it('shows the first of them, and how many there are', async () => {
    const page = await (await host.loggedIn('admin')).open('/admin/orphans');
    expect(page).toContain('150 users without an account');
    expect(page).toContain('member-001');
    expect(page).toContain('member-100');
    expect(page).not.toContain('member-101');
    expect(page).toContain('These are the first 100; 50 more are not shown.');
    for (const uid of ACCOUNTS) expect(page).not.toContain(`<th scope="row">${uid}<`);
    await expectNothingRequested();
  });

  it('counts first, and then erases exactly those who were looked at', async () => {
    const admin = await host.loggedIn('admin');
    const seen = seenIn(await admin.open('/admin/orphans'));
    const counted = await admin.submit('/admin/orphans/dry-run', { ...form, seen });
    expect(counted.status).toBe(200);
    expect(await counted.text()).toContain('<dt>Registered in the debate space</dt><dd>150</dd>');
    await expectNothingRequested();

    const response = await admin.submit('/admin/orphans', { ...form, seen });
    expect([response.status, response.headers.get('location')]).toEqual([303, erasurePath('orphans-2026')]);
    expect(await app.get(DebateSpaceErasures).status('orphans-2026')).toMatchObject({
      total: MEMBERS,
      mode: 'delete',
      requestedBy: 'administration',
    });
  });

  it('erases nobody when somebody has come since it was looked at', async () => {
    const admin = await host.loggedIn('admin');
    const seen = seenIn(await admin.open('/admin/orphans'));
    sim.users.add({ uid: 'newcomer' });
    const response = await admin.submit('/admin/orphans', { ...form, seen });
    expect(response.status).toBe(422);
    const page = await response.text();
    expect(page).toContain('Nothing was requested. The list has changed since you opened it.');
    expect(page).toContain('151 users without an account');
    expect(page).toContain('value="orphans-2026"');
    expect(seenIn(page)).not.toBe(seen);
    await expectNothingRequested();
  });

  it('brings the form back when something is missing or wrong', async () => {
    const admin = await host.loggedIn('admin');
    const seen = seenIn(await admin.open('/admin/orphans'));
    for (const [fields, mistake] of [
      [{ confirmation: 'anonymize' }, 'To confirm, type: delete'],
      [{ mode: '' }, 'Choose what is to be done.'],
      [{ reference: '' }, 'Give it a reference.'],
    ] as const) {
      const response = await admin.submit('/admin/orphans', { ...form, ...fields, seen });
      expect(response.status).toBe(422);
      expect(await response.text()).toContain(mistake);
    }
    await expectNothingRequested();
  });

  it('says that everybody has an account', async () => {
    for (const { uid } of sim.users.all()) if (!ACCOUNTS.includes(uid ?? '')) sim.users.delete(uid ?? '');
    const page = await (await host.loggedIn('admin')).open('/admin/orphans');
    expect(page).toContain('Every registered user has an account.');
    expect(page).not.toContain('action="/admin/orphans"');
  });

  it('shows nobody when none of the first users has an account', async () => {
    const admin = await host.loggedIn('admin');
    for (const uid of ACCOUNTS) sim.users.delete(uid);
    const page = await admin.open('/admin/orphans');
    expect(page).toContain('None of the first users of the debate space has an account here.');
    expect(page).not.toContain('member-001');
    const response = await admin.submit('/admin/orphans', { ...form, seen: '' });
    expect(response.status).toBe(409);
    await expectNothingRequested();
  });

  it('is refused to members, and its form without the token of the session', async () => {
    expect((await (await host.loggedIn('ada')).request('/admin/orphans')).status).toBe(403);
    const admin = await host.loggedIn('admin');
    expect((await admin.submitWithoutToken('/admin/orphans', form)).status).toBe(403);
    await expectNothingRequested();
  });
});

chromium.describe('the page of users without an account, in a browser', () => {
  const host = sampleAppInChromium(20);

  it('leads from the administration to the receipts', async () => {
    const page = await host.loggedIn('admin');
    await page.goto('/admin');
    await page.getByRole('link', { name: 'Users without an account' }).click();
    await page.getByRole('heading', { name: '20 users without an account' }).waitFor();
    await page.getByLabel('Anonymize: names').check();
    await page.getByLabel('Reference').fill('orphans-2026');
    await page.getByRole('button', { name: 'Count first' }).click();
    await page.getByText('Nothing is erased yet.').waitFor();
    expect(host.sim.received.of('anonymize')).toEqual([]);
    await page.getByLabel('To confirm').fill('anonymize');
    await page.getByRole('button', { name: 'Anonymize 20 users' }).click();
    await page.getByText('Done.', { exact: true }).first().waitFor();
    await lastValueFrom(host.app.get(DebateSpaceErasures).progress('orphans-2026'));
    expect(host.sim.received.of('anonymize')).toHaveLength(20);
    await page.goto('/admin/orphans');
    await page.getByText('Every registered user has an account.').waitFor();
  });
});
