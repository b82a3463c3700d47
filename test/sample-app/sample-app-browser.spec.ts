import { expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { chromium } from 'debate-space-fixtures/chromium.js';
import { sampleAppInChromium } from 'debate-space-fixtures/sample-app-in-chromium.js';

const MEMBERS = 60;
const leavers = Array.from({ length: MEMBERS }, (_, n) => `member-${String(n + 1).padStart(3, '0')}`);
const fileOf = (uids: readonly string[]) => ({
  name: 'leavers.csv',
  mimeType: 'text/csv',
  buffer: Buffer.from(['uid', ...uids].join('\n')),
});
const list = fileOf(leavers);

const textOf = (page: Page, show: string): Promise<string> =>
  page.locator(`[data-show="${show}"]`).innerText();

async function confirm(page: Page, wish: 'Anonymize me' | 'Delete me', typed: string): Promise<void> {
  await page.goto('/me');
  const details = page.locator('details', { hasText: wish });
  await details.locator('summary').click();
  await details.getByLabel('To confirm').fill(typed);
  await details.getByRole('button').click();
}

async function download(page: Page, link: string): Promise<string> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: link }).click(),
  ]);
  return readFile(await file.path(), 'utf8');
}

async function fillIn(page: Page, reference: string, file = list): Promise<void> {
  await page.goto('/admin/erasures');
  await page.getByLabel('File with the users').setInputFiles(file);
  await page.getByLabel('Delete: the users go').check();
  await page.getByLabel('Reference').fill(reference);
}

chromium.describe('the sample app in a browser', () => {
  const host = sampleAppInChromium(MEMBERS);

  /** A page that is loaded again forgets it. */
  const MARKED = `globalThis.marked === true`;
  const mark = (page: Page): Promise<void> => page.evaluate('void (globalThis.marked = true)');

  it('shows the debate session alive, and that it goes with the logout here, without a reload', async () => {
    const page = await host.loggedIn('ada');
    await page.getByText('Ada (you)').waitFor();
    await page.getByText('● Signed in').waitFor();
    await mark(page);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByText('Nobody is signed in.').waitFor();
    await page.getByRole('log').getByText('Ada has left.').waitFor();
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    expect(await page.evaluate(MARKED)).toBe(true);
    expect(host.sim.received.logouts).toEqual(['ada']);
  });

  it('gives me a file with my data, and says so when there is none', async () => {
    const page = await host.loggedIn('ada');
    await page.getByRole('link', { name: 'My data' }).first().click();
    expect(JSON.parse(await download(page, 'Download my data'))).toMatchObject({ uid: 'ada' });
    host.sim.users.delete('ada');
    await page.getByRole('link', { name: 'Download my data' }).click();
    await page.getByText('The debate space has no data about you').waitFor();
  });

  it('asks again when the confirmation is wrong, at the field itself', async () => {
    const page = await host.loggedIn('ada');
    await confirm(page, 'Delete me', 'eve');
    await page.getByText('This is not your user name. Nothing was requested').waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('delete-confirmation');
    expect(host.sim.received.count).toBe(0);
  });

  it('deletes me, and shows the receipt before and after the debate space has done it', async () => {
    const page = await host.loggedIn('ada');
    await host.sim.goDown();
    await confirm(page, 'Delete me', 'ada');
    await page.getByRole('heading', { name: 'Receipt of an erasure' }).waitFor();
    await mark(page);
    expect(await textOf(page, 'sentence')).not.toContain('deleted');
    await page.locator('summary', { hasText: 'Details' }).click();
    expect(await page.getByText('Done at').isVisible()).toBe(false);

    await host.sim.comeBack();
    await page.getByText('Your data was deleted on').waitFor();
    await page.getByText('Done at').waitFor();
    expect(await textOf(page, 'receipt.outcome')).toBe('erased (answer 200)');
    expect(await page.evaluate(MARKED)).toBe(true);
    expect(host.sim.users.wasDeleted('ada')).toBe(true);

    const stranger = await host.visitor();
    await stranger.goto(page.url());
    await stranger.locator('summary', { hasText: 'Details' }).click();
    expect(await textOf(stranger, 'receipt.outcome')).toBe('erased (answer 200)');
    for await (const { uidHash } of host.app.get(DebateSpaceErasures).receiptsOf('ada'))
      expect(await stranger.content()).not.toContain(uidHash);
    expect(await stranger.locator('#here').innerText()).not.toMatch(/\bada\b/i);
  });

  it('works without JavaScript', async () => {
    const page = await host.loggedIn('ben', { javaScriptEnabled: false });
    await confirm(page, 'Anonymize me', 'eve');
    await page.getByText('This is not your user name.').waitFor();
    await confirm(page, 'Anonymize me', 'ben');
    await page.getByRole('heading', { name: 'Receipt of an erasure' }).waitFor();
    await host.sim.received.waitFor('anonymize');
    const again = page.getByRole('link', { name: 'Load the page again' });
    while (!(await textOf(page, 'sentence')).startsWith('Your data was anonymized')) await again.click();
    expect(host.sim.users.has('ben')).toBe(false);
  });

  it('deletes the users of a file, with a bar that moves, a pause, and receipts', async () => {
    host.sim.faults.add({ operation: 'delete', kind: 'latency', ms: 150 });
    const page = await host.loggedIn('admin');
    await fillIn(page, 'leavers 2026/1');
    await page.getByRole('button', { name: 'Count first' }).click();
    const registered = page.locator('div', { hasText: /^Registered in the debate space60$/ });
    await registered.waitFor();
    expect(host.sim.users.count).toBe(MEMBERS + 4);

    // The file is still there: only the figures were put into the page.
    await page.getByLabel('To confirm').fill('delete');
    await page.getByRole('button', { name: 'Delete 60 users' }).click();
    await page.getByRole('progressbar').waitFor();
    await mark(page);
    const finished = page.locator('[data-show="counts.finished"]');
    const bar = page.getByRole('progressbar');
    await finished.filter({ hasText: /^([5-9]|[1-4]\d)$/ }).waitFor();
    expect(Number(await bar.getAttribute('value'))).toBeGreaterThan(4);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused.').waitFor();
    expect((await host.app.get(DebateSpaceErasures).status('leavers 2026/1')).state).toBe('paused');
    expect(host.sim.users.count).toBeGreaterThan(4);
    await page.getByRole('button', { name: 'Resume' }).click();
    await finished.filter({ hasText: /^[345]\d$/ }).waitFor();
    await page.getByText('Done.', { exact: true }).waitFor();
    expect(await finished.innerText()).toBe('60');
    expect(await bar.getAttribute('value')).toBe('60');
    expect(await page.getByRole('button', { name: 'Pause' }).isVisible()).toBe(false);
    expect(await page.evaluate(MARKED)).toBe(true);
    expect(host.sim.users.count).toBe(4);

    const receipts = (await download(page, 'Download the receipts')).trimEnd().split('\n');
    expect(receipts).toHaveLength(MEMBERS);
    expect(receipts.join()).not.toContain('member-');
  });

  it('cancels what has not begun', async () => {
    const page = await host.loggedIn('admin');
    await host.sim.goDown();
    await fillIn(page, 'leavers');
    await page.getByLabel('To confirm').fill('delete');
    await page.getByRole('button', { name: 'Delete all of them' }).click();
    await page.getByRole('button', { name: 'Cancel what has not begun' }).click();
    await page.getByText('Canceled: ').first().waitFor();
    expect((await host.app.get(DebateSpaceErasures).status('leavers')).canceled).toBeGreaterThan(0);
  });

  it('brings the form back with what is wrong at each field', async () => {
    const page = await host.loggedIn('admin');
    await fillIn(page, 'leavers');
    await page.getByLabel('To confirm').fill('anonymize');
    await page.getByRole('button', { name: 'Delete all of them' }).click();
    await page.getByText('To confirm, type: delete').waitFor();
    expect(await page.getByLabel('Reference').inputValue()).toBe('leavers');
    expect(host.sim.received.count).toBe(0);
  });

  it('keeps what was counted when the form comes back, and drops it when the file changes', async () => {
    const page = await host.loggedIn('admin');
    await fillIn(page, 'leavers');
    await page.getByRole('button', { name: 'Count first' }).click();
    await page.getByText('Nothing is erased yet.').waitFor();
    await page.getByLabel('To confirm').fill('wrong');
    await page.getByRole('button', { name: 'Delete 60 users' }).click();
    await page.getByText('To confirm, type: delete').waitFor();
    expect(await page.getByText('Nothing is erased yet.').isVisible()).toBe(true);
    await page.getByLabel('Anonymize: names').check();
    await page.getByRole('button', { name: 'Anonymize 60 users' }).waitFor();
    await page.getByLabel('File with the users').setInputFiles(fileOf(['ada']));
    await page.getByRole('button', { name: 'Anonymize all of them' }).waitFor();
    expect(await page.getByText('Nothing is erased yet.').isVisible()).toBe(false);
  });

  it('leads to the wanted page after the login, and shows its times in the zone of the browser', async () => {
    const page = await host.visitor({ timezoneId: 'Asia/Tokyo' });
    await page.goto('/admin/users?page=2&per_page=10');
    await page.getByText('Log in to continue.').waitFor();
    await page.getByLabel('User name').fill('admin');
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Wrong user name or password.').waitFor();
    await page.getByLabel('Password').fill('demo');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Page 2 of 7.').waitFor();
    expect(await page.locator('tbody td').last().innerText()).toMatch(/^\d+ \w+ \d{4}, [\d:]+ GMT\+9$/);
  });

  it('sends a parked logout again', async () => {
    await host.parkedLogout('ada');
    const page = await host.loggedIn('admin');
    await page.goto('/admin/outbox');
    await page.getByText('Hint:').waitFor();
    await page.getByRole('button', { name: 'Retry: ada' }).click();
    await page.getByText('Retrying the logout.').waitFor();
    await host.sim.received.waitFor('logout', { count: 2 });
    expect(host.sim.received.logouts).toEqual(['ada']);
  });
});
