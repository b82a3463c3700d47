// Takes the pictures of the README: the sample app in a real Chromium, in the middle of things.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { EXAMPLE } from '../sample-app/src/admin/erasure-form.js';
import { startSimulator } from '../sample-app/src/simulator.js';

const pictures = fileURLToPath(new URL('../docs/pictures/', import.meta.url));
const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';

mkdirSync(pictures, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'screenshots-'));
process.env.STORAGE_PATH = join(folder, 'debate-space.db');
const simulator = await startSimulator(0, 120);
simulator.faults.add({ kind: 'latency', ms: 400 }); // as with `npm start`
const { createApp } = await import('../sample-app/src/create-app.js');
const app = await createApp({ logger: false });
await app.listen(0, '127.0.0.1');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  await logout(await loggedIn('ada'));
  await bulkErasure(await loggedIn('admin'));
  await faults(await browser.newPage({ viewport: { width: 960, height: 600 }, colorScheme: 'light' }));
} finally {
  await browser.close();
  await app.close();
  await simulator.stop();
  rmSync(folder, { recursive: true });
}

async function loggedIn(uid: string): Promise<Page> {
  const viewport = { width: 1280, height: 800 };
  const page = await browser.newPage({ baseURL: await app.getUrl(), viewport, colorScheme: 'light' });
  await page.goto('/login');
  await page.getByText('Nobody is signed in.').waitFor();
  await page.getByLabel('User name').fill(uid);
  await page.getByLabel('Password').fill('demo');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('● Signed in').waitFor();
  await page.getByText('has joined').waitFor();
  return page;
}

/** Two moments of one page, side by side. */
async function logout(page: Page): Promise<void> {
  await page.setViewportSize({ width: 980, height: 700 });
  const before = await page.screenshot();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('log').getByText('has left').waitFor();
  const after = await page.screenshot();
  const pictured = (moment: Buffer, words: string): string =>
    `<figure><figcaption>${words}</figcaption><img src="data:image/png;base64,${moment.toString('base64')}"></figure>`;
  const both = await browser.newPage({ viewport: { width: 1700, height: 680 } }); // without the app's content security policy
  await both.setContent(`<style>
    body { margin: 12px; display: flex; gap: 12px; background: #fff; font: 600 22px system-ui, sans-serif; }
    figure { margin: 0; flex: 1 } figcaption { padding: 4px 0 10px } img { width: 100%; border: 1px solid #ccc }
  </style>${pictured(before, '1. Ada is logged in')}${pictured(after, '2. Ada logs out: the debate space knows')}`);
  await both.locator('body').screenshot({ path: join(pictures, 'logout.png') });
}

async function bulkErasure(page: Page): Promise<void> {
  await page.goto('/admin');
  await page.getByLabel('User names').fill(EXAMPLE);
  await page.getByLabel('Delete: users go').check();
  await page.getByLabel('Reference').fill('leavers-2026');
  await page.getByLabel('To confirm').fill('delete');
  await page.getByRole('button', { name: 'Erase these users' }).click();
  await page.getByText('Waiting for the rate limit').waitFor({ timeout: 120_000 });
  await page.screenshot({ path: join(pictures, 'bulk-erasure.png'), fullPage: true });
}

async function faults(page: Page): Promise<void> {
  await page.goto(`${simulator.url}/`);
  await page.getByText('signed in to the debate').waitFor();
  await page.getByLabel('Down').check();
  await page.screenshot({ path: join(pictures, 'faults.png') });
}
