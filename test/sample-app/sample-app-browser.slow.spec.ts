import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { chromium, launchChromium } from '#support/browser/chromium.js';
import { findings, tabTo } from '#support/browser/pages.js';
import { startSampleApp, type RunningSampleApp } from './running-sample-app.js';

const EXPECTED_ANSWER = /^Failed to load resource: the server responded with a status of (404|422)/;

chromium.describe('the sample app in Chromium', () => {
  let host: RunningSampleApp;
  let browser: Browser;
  let page: Page;
  /** What pages wrote to the console: errors of scripts, and what the content security policy stopped. */
  const complaints: string[] = [];

  beforeAll(async () => {
    host = await startSampleApp(60);
    browser = await launchChromium();
  });
  afterAll(async () => {
    await browser.close();
    await host.close();
  });
  beforeEach(async () => {
    page = await visitor();
  });
  afterEach(async () => {
    host.sim.faults.clear();
    for (const context of browser.contexts()) await context.close();
    expect(complaints.splice(0)).toEqual([]);
  });

  async function visitor(javaScriptEnabled = true): Promise<Page> {
    const context = await browser.newContext({ baseURL: host.url, javaScriptEnabled });
    const opened = await context.newPage();
    opened.on('pageerror', ({ message }) => complaints.push(message));
    opened.on('console', (message) => {
      if (message.type() === 'error' && !EXPECTED_ANSWER.test(message.text()))
        complaints.push(message.text());
    });
    return opened;
  }

  async function logIn(uid: string): Promise<void> {
    await page.goto('/login');
    await page.getByLabel('User name').fill(uid);
    await page.getByLabel('Password').fill('demo');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('You are logged in as').waitFor();
  }

  async function press(selector: string, key = 'Enter'): Promise<void> {
    expect(await tabTo(page, selector)).not.toBe('none');
    await page.keyboard.press(key);
  }

  async function type(selector: string, text: string): Promise<void> {
    expect(await tabTo(page, selector)).not.toBe('none');
    await page.keyboard.type(text);
  }

  it('a visitor and a member meet no page in which axe finds something', async () => {
    await page.goto('/nowhere');
    const found = await findings(page);
    await page.goto('/login');
    await page.getByLabel('User name').fill('ada');
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Wrong user name or password.').waitFor();
    found.push(...(await findings(page)));
    await logIn('ada');
    await page.locator('summary', { hasText: 'Delete me' }).click();
    await page.locator('#delete').fill('eve');
    await page.locator('#delete').press('Enter');
    await page.getByText('This is not your user name.').waitFor();
    found.push(...(await findings(page)));
    await page.locator('#delete').fill('ada');
    await page.locator('#delete').press('Enter');
    await page.getByText('Your data was deleted on').waitFor();
    found.push(...(await findings(page)));
    expect(found).toEqual([]);
  });

  it('an administrator meets no state of the page in which axe finds something', async () => {
    host.sim.faults.add({ operation: 'logout', kind: 'status', status: 403, times: 1 });
    await logIn('cleo');
    await page.getByRole('button', { name: 'Log out' }).click();
    await logIn('admin');
    await page.goto('/admin');
    while (!(await page.getByText('Hint:').isVisible())) await page.reload();
    const found = await findings(page);
    await page.evaluate(`document.querySelector('form:has(#uids)').noValidate = true`);
    await page.getByRole('button', { name: 'Erase these users' }).click();
    await page.getByText('Enter the users.').waitFor();
    found.push(...(await findings(page)));
    await page.getByLabel('User names').fill('member-001\nnobody');
    await page.getByLabel('Anonymize: names go').check();
    await page.getByLabel('Reference').fill('leavers');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('nothing is erased yet').waitFor();
    found.push(...(await findings(page)));
    await page.getByLabel('To confirm').fill('anonymize');
    await page.getByRole('button', { name: 'Erase these users' }).click();
    await page.getByText('Done.', { exact: true }).waitFor();
    found.push(...(await findings(page)));
    expect(found).toEqual([]);
  });

  it('a user logs in and out with the keyboard, and sees who joins and leaves the debate space', async () => {
    await page.goto('/');
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Skip to the content');
    await page.getByText(/^(Nobody is signed in|● Signed in)/).waitFor();
    await type('#username', 'ben');
    await type('#password', 'demo');
    await page.keyboard.press('Enter');
    await page.getByText(/^● Signed in: .*Ben/).waitFor();
    await page.getByRole('log').getByText('Ben has joined.').waitFor();
    await press('header button');
    await page.getByText('You are logged out.').waitFor();
    await page.getByRole('log').getByText('Ben has left.').waitFor();
  });

  it('a user is anonymized with the keyboard, and the receipt follows the erasure', async () => {
    await logIn('cleo');
    await press('details:has([value="anonymize"]) summary');
    await type('#anonymize', 'eve');
    await page.keyboard.press('Enter');
    await page.getByText('This is not your user name.').waitFor();
    await page.keyboard.type('cleo'); // the field has the focus
    await host.sim.goDown();
    await press('details:has([value="anonymize"]) button', 'Space');
    await page.getByRole('heading', { name: 'Receipt of an erasure' }).waitFor();
    await page.getByText('The app tries again automatically.').waitFor();
    await host.sim.comeBack();
    complaints.length = 0; // Chromium reports that the simulator was away
    await page.getByText('Your data was anonymized on').waitFor();
    expect(host.sim.users.has('cleo')).toBe(false);
  });

  it('a user without JavaScript has every page', async () => {
    page = await visitor(false);
    await logIn('ben');
    await page.locator('summary', { hasText: 'Anonymize me' }).click();
    await page.locator('#anonymize').fill('ben');
    await page.locator('#anonymize').press('Enter');
    const again = page.getByRole('link', { name: 'Load the page again' });
    while (!(await page.getByText('Your data was anonymized on').isVisible())) await again.click();
    expect(host.sim.users.has('ben')).toBe(false);
  });

  it('an administrator erases a list with the keyboard: dry run, confirmation, pause, resume and cancel', async () => {
    // The list cannot be finished before it is canceled: after ten users, the service is locked.
    host.sim.faults.add({ operation: 'delete', kind: 'latency', ms: 0, times: 10 });
    host.sim.faults.add({ operation: 'delete', kind: 'status', status: 423 });
    await logIn('admin');
    await press('a[href="/admin"]');
    await page.getByRole('heading', { name: 'Erase a list of users' }).waitFor();
    await press('a[href="/admin?example=1"]');
    await page.waitForURL('**/admin?example=1');
    await press('[name="mode"]', 'Space');
    await page.keyboard.press('ArrowDown'); // from "anonymize" to "delete"
    await type('#reference', 'all leavers');
    await press('[formaction]');
    await page.getByText('nothing is erased yet').waitFor();
    await type('#confirmation', 'delete');
    await press('form button.danger'); // the Enter key in a field is a dry run
    await page.getByRole('heading', { name: 'Erasure all leavers' }).waitFor();
    const finished = page.locator('span[data-show="finished"]');
    await finished.filter({ hasText: /^[1-9]/ }).waitFor();
    await press('form[action*="/pause"] button');
    await page.getByText('Paused.').waitFor();
    await press('form[action*="/resume"] button');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await press('form[action*="/cancel"] button');
    await page.getByText('Canceled.').waitFor();
    expect(host.sim.users.has('member-001')).toBe(false);
    expect(host.sim.users.has('member-060')).toBe(true);
    expect(await page.getByRole('button', { name: 'Pause' }).isVisible()).toBe(false);
  });
});
