import { expect, it } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import axe from 'axe-core';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import type { Page } from 'playwright-core';
import { lastValueFrom } from 'rxjs';
import { chromium } from 'debate-space-fixtures/chromium.js';
import { sampleAppInChromium } from 'debate-space-fixtures/sample-app-in-chromium.js';

const screens = [
  { name: 'on a desktop', width: 1280, height: 800, colorScheme: 'light' },
  { name: 'on a phone at night', width: 360, height: 740, colorScheme: 'dark' },
] as const;
/** Of the smallest phones, and of a desktop whose user has enlarged pages to 400 percent. */
const NARROWEST = 320;

chromium.describe('every page of the sample app', () => {
  const host = sampleAppInChromium(30);

  /** What is wrong with the page, as it is now, on each screen. */
  async function findings(page: Page): Promise<string[]> {
    const { pathname } = new URL(page.url());
    const found: string[] = [];
    await page.evaluate(axe.source);
    for (const { name, width, height, colorScheme } of screens) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      const { violations } = await page.evaluate<AxeResults>('axe.run()');
      for (const { id, impact, nodes } of violations) {
        if (impact !== 'serious' && impact !== 'critical') continue;
        found.push(...nodes.map(({ html }) => `${pathname} ${name}: ${id}, ${html}`));
      }
    }
    for (const width of [...screens.map((screen) => screen.width), NARROWEST]) {
      await page.setViewportSize({ width, height: 640 });
      const scrolls = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
      if (scrolls) found.push(`${pathname} is wider than ${width} px`);
    }
    return found;
  }

  it('fits every screen, and axe finds nothing serious: for visitors', async () => {
    const erasures = host.app.get(DebateSpaceErasures);
    const { reference } = await erasures.request({ uid: 'cleo', mode: 'delete', requestedBy: 'the user' });
    await lastValueFrom(erasures.progress(reference));

    const page = await host.visitor();
    const found: string[] = [];
    for (const path of ['/login', `/receipts/${reference}`, '/nowhere']) {
      await page.goto(path);
      found.push(...(await findings(page)));
    }
    await page.goto('/login');
    await page.getByLabel('User name').fill('ada');
    await page.getByLabel('Password').fill('wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByText('Wrong user name or password').waitFor();
    expect([...found, ...(await findings(page))]).toEqual([]);
  });

  it('fits every screen, and axe finds nothing serious: for members', async () => {
    const page = await host.loggedIn('ada');
    const found = await findings(page);
    await page.goto('/me');
    for (const summary of await page.locator('summary').all()) await summary.click();
    found.push(...(await findings(page)));
    await page.getByLabel('To confirm').first().fill('eve');
    await page.getByRole('button', { name: 'Anonymize me for good' }).click();
    await page.getByText('This is not your user name.').waitFor();
    expect([...found, ...(await findings(page))]).toEqual([]);
  });

  it('fits every screen, and axe finds nothing serious: for administrators', async () => {
    await host.parkedLogout('ben');
    await host.sim.goDown();
    const members = ['member-001', 'member-002'];
    await host.app.get(DebateSpaceErasures).requestMany(members, { mode: 'anonymize', reference: 'leavers' });
    await host.sim.comeBack();

    const page = await host.loggedIn('admin');
    const found: string[] = [];
    for (const path of [
      '',
      '/users?page=2&per_page=10',
      '/erasures',
      '/orphans',
      '/erasure?reference=leavers',
      '/outbox',
    ]) {
      await page.goto(`/admin${path}`);
      found.push(...(await findings(page)));
    }
    await page.goto('/admin/erasures');
    const buffer = Buffer.from('uid\nada\n');
    await page
      .getByLabel('File with the users')
      .setInputFiles({ name: 'x.csv', mimeType: 'text/csv', buffer });
    await page.getByRole('button', { name: 'Count first' }).click();
    await page.getByText('Nothing is erased yet.').waitFor();
    found.push(...(await findings(page)));
    await page.evaluate(`document.querySelector('form[enctype]').noValidate = true`);
    await page.getByRole('button', { name: 'Erase 1 user' }).click();
    await page.getByText('Choose what is to be done.').waitFor();
    expect([...found, ...(await findings(page))]).toEqual([]);
  });

  /** Presses Tab until this has the focus, and sees that the focus shows. */
  async function tabTo(page: Page, selector: string): Promise<void> {
    const isThere = (): Promise<boolean> =>
      page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(selector)})`);
    for (let presses = 0; !(await isThere()); presses += 1) {
      if (presses === 40) throw new Error(`${selector} is not reached by the Tab key`);
      await page.keyboard.press('Tab');
    }
    const outline = 'getComputedStyle(document.activeElement).outlineStyle';
    expect(await page.evaluate<string>(outline)).not.toBe('none');
  }

  it('works with the keyboard alone: from the login to my own erasure', async () => {
    const page = await host.visitor();
    await page.goto('/');
    await page.keyboard.press('Tab');
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Skip to the content');
    await tabTo(page, '#username');
    await page.keyboard.type('ada');
    await page.keyboard.press('Tab');
    await page.keyboard.type('demo');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'You are logged in as Ada' }).waitFor();

    await tabTo(page, 'a[href="/me"]');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Your data in the debate space' }).waitFor();
    await tabTo(page, 'details:has([action="/me/delete"]) summary');
    await page.keyboard.press('Enter');
    await tabTo(page, '#delete-confirmation');
    await page.keyboard.type('eve');
    await page.keyboard.press('Enter');
    await page.getByText('This is not your user name.').waitFor();
    await page.keyboard.type('ada'); // the field has the focus
    await tabTo(page, '[action="/me/delete"] button');
    await page.keyboard.press('Space');
    await page.getByText('Your data was deleted on').waitFor();
    expect(host.sim.users.wasDeleted('ada')).toBe(true);
  });

  it('works with the keyboard alone: from a file to the end of a bulk erasure', async () => {
    const page = await host.loggedIn('admin');
    page.on('filechooser', () => undefined); // asks Chromium early for the event, not while the key is pressed
    await tabTo(page, 'a[href="/admin"]');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Administration' }).waitFor();
    await tabTo(page, 'a[href="/admin/erasures"]');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Erase many users' }).waitFor();
    await tabTo(page, '#list');
    const chooser = page.waitForEvent('filechooser');
    await page.keyboard.press('Enter');
    const buffer = Buffer.from('uid\nmember-001\nmember-002\n');
    await (await chooser).setFiles({ name: 'leavers.csv', mimeType: 'text/csv', buffer });
    await tabTo(page, '[name="mode"]');
    await page.keyboard.press('Space');
    await tabTo(page, '#reference');
    await page.keyboard.type('leavers');
    await tabTo(page, '[data-into]');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing is erased yet.').waitFor();
    expect(await page.evaluate<boolean>('document.activeElement.matches("[data-into]")')).toBe(true);
    await tabTo(page, '#confirmation');
    await page.keyboard.type('anonymize');
    await tabTo(page, 'button.danger');
    await page.keyboard.press('Enter');
    await page.getByText('Done.', { exact: true }).waitFor();
    expect(host.sim.users.has('member-001')).toBe(false);
    await tabTo(page, '[href^="/admin/erasure/receipts"]');
  });
});
