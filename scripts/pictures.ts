// npm run pictures: takes the pictures of docs/pictures again, from the sample app and its simulator in Chromium.
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { launchChromium } from '#support/browser/chromium.js';
import { startSampleApp } from '../test/sample-app/running-sample-app.js';

const file = (name: string): string =>
  fileURLToPath(new URL(`../docs/pictures/${name}.png`, import.meta.url));
const app = await startSampleApp(90);
const browser = await launchChromium();
try {
  await takeLogout();
  await takeFailures();
  await takeErasure();
} finally {
  await browser.close();
  await app.close();
}

/** @param height of the part of the page that is shown */
function open(width: number, height: number): Promise<Page> {
  return browser.newPage({ baseURL: app.url, viewport: { width, height } });
}

async function logIn(page: Page, uid: string): Promise<void> {
  await page.goto('/login');
  await page.getByLabel('User name').fill(uid);
  await page.getByLabel('Password').fill('demo');
  await page.getByRole('button', { name: 'Log in' }).click();
}

/** Two moments side by side. */
async function takeLogout(): Promise<void> {
  const page = await open(832, 590);
  await logIn(page, 'ada');
  await page.getByRole('log').getByText('Ada has joined.').waitFor();
  const before = await page.screenshot();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('log').getByText('Ada has left.').waitFor();
  const after = await page.screenshot();
  const figures = [
    ['1. Ada is logged in', before] as const,
    ['2. Ada logs out: the debate space knows', after] as const,
  ].map(
    ([title, picture]) => `<figure><figcaption>${title}</figcaption>
      <img src="data:image/png;base64,${picture.toString('base64')}"></figure>`,
  );
  const both = await open(1676, 640);
  await both.setContent(`<style>
    body { margin: 0; display: flex; gap: 16px; font: bold 22px sans-serif }
    figure { margin: 0 } figcaption { margin: 0 0 8px } img { border: 1px solid #ccc; display: block }
    </style>${figures.join('')}`);
  await both.screenshot({ path: file('logout') });
}

async function takeFailures(): Promise<void> {
  const page = await open(800, 560);
  await page.goto(app.sim.url);
  await page.getByLabel('Down').check();
  await page.getByText('A failure is simulated.').waitFor();
  await page.screenshot({ path: file('faults') });
  await page.getByLabel('Answers as usual').check();
}

/** A list that waits for the rate limit, after the first 80 users of a minute. */
async function takeErasure(): Promise<void> {
  const page = await open(960, 700);
  await logIn(page, 'admin');
  await page.goto('/admin');
  await page.getByRole('link', { name: 'Fill in an example' }).click();
  await page.getByLabel('Delete: users go').check();
  await page.getByLabel('Reference').fill('leavers-2026');
  await page.getByLabel('To confirm').fill('delete');
  await page.getByRole('button', { name: 'Erase these users' }).click();
  await page.getByText('Waiting for the rate limit').waitFor();
  await page.screenshot({ path: file('bulk-erasure'), fullPage: true });
}
