import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { INestApplication } from '@nestjs/common';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceErasures, DebateSpaceEvents } from 'nestjs-debate-space';
import { filter, firstValueFrom, lastValueFrom, timeout } from 'rxjs';
import { Browser } from './demo/browser.js';
import { startSimulator } from './simulator.js';

const DEADLINE_MS = 50_000;
const WAIT_MS = 15_000;
const LEAVERS = Array.from({ length: 20 }, (_, n) => `leaver-${n + 1}`);

/** Shows without a window what the app and the debate space do together. The exit code is 1 if something is wrong. */
class Demo {
  failures = 0;
  readonly #url: string;

  constructor(
    readonly app: INestApplication,
    readonly simulator: DebateSpaceSimulator,
    url: string,
  ) {
    this.#url = url;
  }

  async logouts(): Promise<void> {
    const { debate, received } = this.simulator;
    console.log('\nLogging in and out');
    const ada = await this.#loggedIn('ada');
    this.#check('Ada is signed in to the debate space.', debate.isSignedIn('ada'));
    await ada.logIn('ada');
    this.#check('A second login does not log Ada out: she is still signed in.', debate.isSignedIn('ada'));
    const start = performance.now();
    await ada.submit('/logout');
    await received.waitFor(({ uid }) => uid === 'ada', { timeoutMs: WAIT_MS });
    const ms = Math.round(performance.now() - start);
    this.#check('Ada is logged out of the app.', (await ada.open('/')).includes('>Log in</h1>'));
    this.#check(`Ada has left the debate space, ${ms} ms after the click.`, !debate.isSignedIn('ada'));

    console.log('\nLogging out while the debate space is down');
    const ben = await this.#loggedIn('ben');
    await this.simulator.goDown();
    const { events$ } = this.app.get(DebateSpaceEvents);
    const retrying = events$.pipe(
      filter(({ type }) => type === 'logout-retrying'),
      timeout(WAIT_MS),
    );
    const [, { status }] = await Promise.all([firstValueFrom(retrying), ben.submit('/logout')]);
    this.#check('Ben is logged out of the app all the same.', status === 303);
    this.#check('The first delivery to the debate space has failed.', debate.isSignedIn('ben'));
    await this.simulator.comeBack();
    await received.waitFor(({ uid }) => uid === 'ben', { timeoutMs: WAIT_MS });
    this.#check('The debate space is back, and Ben has left it.', !debate.isSignedIn('ben'));
  }

  async myData(): Promise<void> {
    const { users, debate } = this.simulator;
    console.log('\nMy data');
    const ben = await this.#loggedIn('ben');
    const record = (await (await ben.request('/my-data.json')).json()) as { email?: string };
    this.#check('Ben downloads his data.', record.email === users.get('ben')?.email);
    const wish = { mode: 'anonymize', confirmation: 'ben' };
    const forged = await ben.submitWithoutToken('/erasure', wish);
    this.#check('A form of another site is refused.', forged.status === 403);
    const mistyped = await ben.submit('/erasure', { ...wish, confirmation: 'cleo' });
    this.#check('A wrong confirmation is refused.', mistyped.status === 422 && users.has('ben'));
    const receipt = await this.#erased(await ben.submit('/erasure', wish));
    const anonymous = users.all().find(({ uid }) => uid === null);
    this.#check('The debate space has anonymized Ben.', !users.has('ben') && anonymous?.email === null);
    this.#check('Ben is logged out here, too.', (await ben.open('/')).includes('>Log in</h1>'));
    this.#check(
      'The receipt needs no login and shows no name.',
      receipt.includes('Your data was anonymized') && !/\bben\b/i.test(receipt),
    );
    const cleo = await this.#loggedIn('cleo');
    await this.#erased(await cleo.submit('/erasure', { mode: 'delete', confirmation: 'cleo' }));
    this.#check('The debate space has deleted Cleo.', users.wasDeleted('cleo') && !debate.isSignedIn('cleo'));
  }

  async list(): Promise<void> {
    const { users } = this.simulator;
    console.log('\nA list of erasures');
    for (const uid of LEAVERS) users.add({ uid });
    const before = users.count;
    const uids = [...LEAVERS, 'never-registered', 'admin'].join('\n');
    const form = { uids, mode: 'delete', reference: 'leavers', confirmation: 'delete' };
    const ada = await this.#loggedIn('ada');
    this.#check('Ada is not an administrator.', (await ada.request('/admin')).status === 403);
    const admin = await this.#loggedIn('admin');
    const counted = await (await admin.submit('/admin/erasures/dry-run', form)).text();
    this.#check(
      'A dry run counts 22 users, and deletes nobody.',
      counted.includes('Different users</dt><dd>22<') && users.count === before,
    );
    await admin.submit('/admin/erasures', form);
    const progress = this.app.get(DebateSpaceErasures).progress('leavers');
    const { done, notFound, vetoed } = await lastValueFrom(progress.pipe(timeout(WAIT_MS)));
    this.#check(`Deleted: ${done}. Not found: ${notFound}.`, done === 20 && notFound === 1);
    this.#check('The app has vetoed the erasure of its administrator.', vetoed === 1 && users.has('admin'));
    this.#check('Nobody else is gone.', users.count === before - 20);
  }

  /** Opens the receipt of an erasure when it is finished. */
  async #erased(answer: Response): Promise<string> {
    const path = answer.headers.get('location') ?? '';
    const progress = this.app.get(DebateSpaceErasures).progress(path.replace('/receipts/', ''));
    await lastValueFrom(progress.pipe(timeout(WAIT_MS)));
    return new Browser(this.#url).open(path);
  }

  async #loggedIn(uid: string): Promise<Browser> {
    const browser = new Browser(this.#url);
    await browser.logIn(uid);
    return browser;
  }

  #check(sentence: string, holds: boolean): void {
    if (!holds) this.failures += 1;
    console.log(`  ${holds ? '✓' : '✗'} ${sentence}`);
  }
}

async function run(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'debate-space-demo-'));
  process.env.STORAGE_PATH = join(folder, 'debate-space.db');
  await using simulator = await startSimulator(0);
  // @nestjs/config reads the environment when the module of the app is loaded.
  const { createApp } = await import('./create-app.js');
  const app = await createApp({ logger: false });
  try {
    await app.listen(0, '127.0.0.1');
    const demo = new Demo(app, simulator, await app.getUrl());
    await demo.logouts();
    await demo.myData();
    await demo.list();
    return demo.failures;
  } finally {
    await app.close();
    await rm(folder, { recursive: true });
  }
}

setTimeout(() => {
  console.error(`The demo did not end within ${DEADLINE_MS / 1000} seconds.`);
  process.exit(1);
}, DEADLINE_MS);
const failures = await run();
console.log(failures === 0 ? '\nEverything as it should be.' : `\nWrong: ${failures}.`);
process.exit(failures === 0 ? 0 : 1);
