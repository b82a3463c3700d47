import { afterAll, afterEach, beforeAll, beforeEach, expect } from '@jest/globals';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import { filter, firstValueFrom } from 'rxjs';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { DEMO_PASSWORD } from '../../../sample-app/src/login/demo-users.js';
import { launchChromium } from './chromium.js';
import { RunningSampleApp } from './running-sample-app.js';

/** Chromium says this of answers that tests ask for: a refused login or form, a page that is not there. */
const EXPECTED_ANSWER = /^Failed to load resource: the server responded with a status of (401|404|422)/;

/**
 * Each test has the sample app, with a debate space and visitors of its own, whose pages complain of nothing. All tests
 * share one Chromium.
 * @param members how many users the debate space has besides the demo ones
 */
export function sampleAppInChromium(members: number): SampleAppInChromium {
  const host = new SampleAppInChromium();
  let chromium: Browser;
  beforeAll(async () => {
    chromium = await launchChromium();
  });
  afterAll(async () => {
    await chromium.close();
  });
  beforeEach(async () => {
    host.begin(chromium, await RunningSampleApp.start(members));
  });
  afterEach(async () => {
    await host.end();
    expect(host.complaints.splice(0)).toEqual([]);
  });
  return host;
}

class SampleAppInChromium {
  /** What the console of a page has complained of: errors of scripts, and what the content security policy stopped. */
  readonly complaints: string[] = [];
  readonly #contexts: BrowserContext[] = [];
  #running: { readonly chromium: Browser; readonly host: RunningSampleApp } | undefined;

  begin(chromium: Browser, host: RunningSampleApp): void {
    this.#running = { chromium, host };
  }

  async end(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close();
    const { host } = this.#now;
    this.#running = undefined;
    await host.close();
  }

  get app(): NestExpressApplication {
    return this.#now.host.app;
  }

  get sim(): DebateSpaceSimulator {
    return this.#now.host.sim;
  }

  get #now() {
    if (!this.#running) throw new Error('The sample app runs while a test runs.');
    return this.#running;
  }

  /** A visitor with cookies of their own, on an empty page. Paths lead to the app. */
  async visitor(options: BrowserContextOptions = {}): Promise<Page> {
    const { chromium, host } = this.#now;
    const context = await chromium.newContext({ baseURL: host.url, ...options });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.on('pageerror', ({ message }) => this.complaints.push(message));
    page.on('console', (message) => {
      const text = message.text();
      const ofSimulator = message.location().url.startsWith(this.sim.url); // which tests take down
      if (message.type() === 'error' && !EXPECTED_ANSWER.test(text) && !ofSimulator) {
        this.complaints.push(text);
      }
    });
    return page;
  }

  async loggedIn(uid: string, options?: BrowserContextOptions): Promise<Page> {
    const page = await this.visitor(options);
    await page.goto('/login');
    await page.getByLabel('User name').fill(uid);
    await page.getByLabel('Password').fill(DEMO_PASSWORD);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'You are logged in as' }).waitFor();
    return page;
  }

  /** The user logs out, and the debate space refuses to hear of it. */
  async parkedLogout(uid: string): Promise<void> {
    this.sim.faults.add({ operation: 'logout', kind: 'status', status: 403, times: 1 });
    const { events$ } = this.app.get(DebateSpaceEvents);
    const parked = firstValueFrom(events$.pipe(filter(({ type }) => type === 'logout-parked')));
    const page = await this.loggedIn(uid);
    await page.getByRole('button', { name: 'Log out' }).click();
    await parked;
  }
}
