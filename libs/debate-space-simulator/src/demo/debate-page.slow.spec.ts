import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { chromium, launchChromium } from '#support/browser/chromium.js';
import { findings, tabTo } from '#support/browser/pages.js';
import type { Browser, Page } from 'playwright-core';
import { simulators } from '../testing/service-client.js';
import type { DebateSpaceSimulator } from '../debate-space-simulator.js';

const start = simulators();

chromium.describe('the page of the simulator in Chromium', () => {
  let browser: Browser;
  let page: Page;
  let sim: DebateSpaceSimulator;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    for (const context of browser.contexts()) await context.close();
    sim = await start({
      users: [
        { uid: 'ada', first_name: 'Ada', contributions: 1 },
        { uid: '<b>eve</b>', first_name: '<img src=x onerror=alert(1)>', contributions: 2 },
      ],
    });
    page = await (await browser.newContext()).newPage();
    await page.goto(sim.url);
    await page.getByText('0 of 2 signed in to the debate').waitFor();
  });

  it('has no state in which axe finds something', async () => {
    const found = await findings(page);
    sim.debate.signIn('ada');
    sim.users.anonymize('<b>eve</b>');
    await page.getByText('Not signed in: 1').click();
    await page.getByLabel('Down').check();
    await page.getByText('A failure is simulated.').waitFor();
    await page.getByLabel('Sign in to the debate space').fill('ada');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The debate space refused the sign-in (503).').waitFor();
    found.push(...(await findings(page)));
    expect(found).toEqual([]);
  });

  it('signs in, finds users and simulates failures with the keyboard alone', async () => {
    expect(await tabTo(page, '[name="mode"]')).not.toBe('none');
    await page.keyboard.press('ArrowDown'); // from "as usual" to "down"
    await page.getByText('A failure is simulated.').waitFor();
    expect((await fetch(`${sim.url}/oauth/token`, { method: 'POST' }).catch(() => undefined))?.status).toBe(
      undefined,
    );
    await page.keyboard.press('ArrowUp');
    await page.getByText('A failure is simulated.').waitFor({ state: 'detached' });
    expect(await tabTo(page, '#uid')).not.toBe('none');
    await page.keyboard.type('ada');
    await page.keyboard.press('Enter');
    await page.getByText('● Signed in').waitFor();
    expect(sim.debate.isSignedIn('ada')).toBe(true);
    expect(await tabTo(page, 'summary')).not.toBe('none');
    await page.keyboard.press('Enter');
    expect(await tabTo(page, '#search')).not.toBe('none');
    await page.keyboard.type('nobody');
    await page.getByText('Nobody.').waitFor();
  });

  it('shows users as text, one after another as they come and go', async () => {
    await page.getByText('Not signed in: 2').click();
    await page.getByText('<img src=x onerror=alert(1)>').waitFor();
    expect(await page.locator('li img, li b').count()).toBe(0);
    sim.debate.signIn('ada');
    await page.getByText('1 of 2 signed in to the debate').waitFor();
    sim.users.delete('ada');
    await page.getByText('0 of 1 signed in to the debate').waitFor();
  });

  it('says that the connection is lost, and has it again', async () => {
    await sim.goDown();
    await page.getByText('Connection lost.').waitFor();
    await sim.comeBack();
    await page.getByText('0 of 2 signed in to the debate').waitFor();
  });
});
