import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { chromium } from 'debate-space-fixtures/chromium.js';
import { sampleAppInChromium } from 'debate-space-fixtures/sample-app-in-chromium.js';

/** Follows the section "Simulated failures" of sample-app/README.md. */
chromium.describe('the simulated failures', () => {
  const host = sampleAppInChromium(30);

  /** Chooses a fault on the page of the simulator, which another page shows. */
  async function choose(fault: string): Promise<void> {
    const page = await host.visitor();
    await page.goto(`${host.sim.url}/`);
    await page.getByText('signed in to the debate').waitFor();
    await page.getByLabel(fault).check();
    await page.getByRole('radio', { name: fault, checked: true }).waitFor();
  }

  const sentence = (page: Page) => page.locator('[data-show="sentence"]');

  async function erase(page: Page, reference: string, uids: readonly string[]): Promise<void> {
    await page.goto('/admin/erasures');
    const buffer = Buffer.from(['uid', ...uids].join('\n'));
    const list = { name: 'leavers.csv', mimeType: 'text/csv', buffer };
    await page.getByLabel('File with the users').setInputFiles(list);
    await page.getByLabel('Delete: the users go').check();
    await page.getByLabel('Reference').fill(reference);
    await page.getByLabel('To confirm').fill('delete');
    await page.getByRole('button', { name: 'Delete all of them' }).click();
    await page.getByRole('progressbar').waitFor();
  }

  it('show an outage: a logout and an erasure wait, the pages say so, and both are done afterwards', async () => {
    const page = await host.loggedIn('ada');
    const admin = await host.loggedIn('admin');
    await choose('Down');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    expect(host.sim.debate.isSignedIn('ada')).toBe(true);

    const ben = await host.loggedIn('ben');
    await ben.getByText('not signed in to the debate space: it does not answer').waitFor();
    await ben.goto('/me');
    await ben.locator('summary', { hasText: 'Delete me' }).click();
    await ben.getByLabel('To confirm').last().fill('ben');
    await ben.getByRole('button', { name: 'Delete me and my contributions' }).click();
    await sentence(ben).filter({ hasText: 'the debate space cannot be reached' }).waitFor();

    await choose('Answers as usual');
    await ben.getByText('Your data was deleted on').waitFor();
    await host.sim.received.waitFor(({ uid, accepted }) => uid === 'ada' && accepted, {
      timeoutMs: 35_000, // the pause between two attempts has grown
    });
    await admin.goto('/admin/outbox');
    await admin.getByText('Nothing. What the debate space refuses').waitFor();
  }, 60_000);

  it('show a parked logout, which is retried', async () => {
    await choose('Refuses logouts');
    const page = await host.loggedIn('ada');
    await page.getByRole('button', { name: 'Log out' }).click();
    const admin = await host.loggedIn('admin');
    await host.sim.received.waitFor('logout');
    await admin.goto('/admin/outbox');
    while (!(await admin.getByText('Hint:').isVisible())) await admin.reload();
    expect(host.sim.debate.isSignedIn('ada')).toBe(true);
    await choose('Answers as usual');
    await admin.getByRole('button', { name: 'Retry all' }).click();
    await admin.getByText('Retrying 1 logout.').waitFor();
    await host.sim.received.waitFor('logout', { count: 2 });
    expect(host.sim.debate.isSignedIn('ada')).toBe(false);
  });

  it('are not needed to see a veto: administrators are not erased', async () => {
    const admin = await host.loggedIn('admin');
    await erase(admin, 'leavers', ['member-001', 'admin']);
    await sentence(admin).filter({ hasText: 'Done. 1 user is not erased: the app vetoed it.' }).waitFor();
    expect(host.sim.users.has('admin')).toBe(true);
  });

  it('show what a cancellation leaves', async () => {
    const admin = await host.loggedIn('admin');
    await choose('Down');
    await erase(admin, 'leavers', ['member-001', 'member-002', 'member-003']);
    await sentence(admin).filter({ hasText: 'the debate space cannot be reached' }).waitFor();
    await admin.getByRole('button', { name: 'Pause' }).click();
    await sentence(admin).filter({ hasText: 'Paused.' }).waitFor();
    await admin.getByRole('button', { name: 'Cancel what has not begun' }).click();
    await sentence(admin).filter({ hasText: 'Canceled: 0 done, 3 not erased.' }).waitFor();
    expect(await admin.locator('[data-show="counts.finished"]').innerText()).toBe('0');
    expect(await admin.getByRole('progressbar').getAttribute('value')).toBe('0');
  });

  it('a file that was chosen stays in a form that comes back', async () => {
    const admin = await host.loggedIn('admin');
    await admin.goto('/admin/erasures');
    const list = { name: 'leavers.csv', mimeType: 'text/csv', buffer: Buffer.from('uid\nmember-001\n') };
    await admin.getByLabel('File with the users').setInputFiles(list);
    await admin.getByLabel('Delete: the users go').check();
    await admin.getByLabel('Reference').fill('leavers');
    await admin.getByLabel('To confirm').fill('wrong');
    await admin.getByRole('button', { name: 'Delete all of them' }).click();
    await admin.getByText('To confirm, type: delete').waitFor();
    await admin.getByLabel('To confirm').fill('delete');
    await admin.getByRole('button', { name: 'Delete all of them' }).click();
    await admin.getByText('Done.', { exact: true }).waitFor();
    expect(host.sim.users.has('member-001')).toBe(false);
  });

  describe('the view of the debate space', () => {
    it('shows you first, then who is signed in, and says what happened to users who are erased', async () => {
      await host.loggedIn('cleo');
      const admin = await host.loggedIn('admin');
      const users = admin.locator('#debate-users .who');
      await admin.getByText('Signed in: 2').waitFor();
      expect((await users.allInnerTexts()).slice(0, 4)).toEqual([
        'Administrator (you)',
        'Cleo',
        'Ada',
        'Ben',
      ]);
      host.sim.users.anonymize('ada');
      host.sim.users.delete('ben');
      await admin.getByRole('log').getByText('Ada was anonymized.').waitFor();
      await admin.getByRole('log').getByText('Ben was deleted.').waitFor();
    });

    it('is in sight on a phone for a moment after a logout, and stays in the list', async () => {
      const page = await host.loggedIn('ada', { viewport: { width: 360, height: 640 } });
      await page.getByText('● Signed in').waitFor({ state: 'attached' });
      await page.getByRole('button', { name: 'Log out' }).click();
      const latest = page.locator('#debate-latest', { hasText: 'Ada has left.' });
      await latest.waitFor();
      const { y = Infinity, height = 0 } = (await latest.boundingBox()) ?? {};
      expect(y + height).toBeLessThanOrEqual(640);
      await latest.waitFor({ state: 'hidden' });
      await page.getByRole('log').getByText('Ada has left.').waitFor();
    });

    it('says in the app, too, that a failure is simulated', async () => {
      const page = await host.loggedIn('ada');
      const failure = page.locator('#debate-failure');
      expect(await failure.isVisible()).toBe(false);
      await choose('Slow');
      await failure.filter({ hasText: 'A failure is simulated.' }).waitFor();
      const admin = await host.loggedIn('admin');
      await admin.goto('/admin/outbox'); // has no view of the debate space
      await admin.getByText('A failure is simulated.').waitFor();
      await choose('Answers as usual');
      await failure.waitFor({ state: 'hidden' });
    });
  });
});
