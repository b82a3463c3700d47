import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceEvents } from 'nestjs-debate-space';
import type { INestApplication } from '@nestjs/common';
import { filter, firstValueFrom, timeout } from 'rxjs';
import { DEMO_PASSWORD } from '../login/demo-users.js';
import { Browser } from './browser.js';
import type { Report } from './report.js';

const WAIT_MS = 15_000;

/** Anyone who is logged out of the app is logged out of the debate space, and nobody else. */
export async function logoutSteps(
  report: Report,
  app: INestApplication,
  simulator: DebateSpaceSimulator,
): Promise<void> {
  const url = await app.getUrl();
  const { debate, received } = simulator;

  report.heading('Logging in and out');
  const ada = new Browser(url);
  await ada.logIn('ada', DEMO_PASSWORD);
  report.check('Ada is logged in to the app.', (await ada.open('/')).includes('logged in as Ada'));
  report.check('Ada is signed in to the debate space.', debate.isSignedIn('ada'));

  const before = ada.cookie;
  await ada.logIn('ada', DEMO_PASSWORD);
  report.check('Ada logs in once more and has another session.', ada.cookie !== before);
  report.check('That is no logout: Ada is still in the debate space.', debate.isSignedIn('ada'));

  const start = performance.now();
  await ada.submit('/logout');
  await received.waitFor(({ uid }) => uid === 'ada', { timeoutMs: WAIT_MS });
  const ms = Math.round(performance.now() - start);
  report.check('Ada is logged out of the app.', (await ada.open('/')).includes('>Log in</h1>'));
  report.check(`Ada has left the debate space, ${ms} ms after the click.`, !debate.isSignedIn('ada'));

  report.heading('Logging out while the debate space is down');
  const ben = new Browser(url);
  await ben.logIn('ben', DEMO_PASSWORD);
  report.check('Ben is logged in, and signed in to the debate space.', debate.isSignedIn('ben'));
  await simulator.goDown();
  const retrying = firstValueFrom(
    app.get(DebateSpaceEvents).events$.pipe(
      filter(({ type }) => type === 'logout-retrying'),
      timeout(WAIT_MS),
    ),
  );
  const { status } = await ben.submit('/logout');
  report.check('The debate space is down, and Ben is logged out of the app all the same.', status === 303);
  await retrying;
  report.check('The first attempt to tell the debate space has failed.', debate.isSignedIn('ben'));
  await simulator.comeBack();
  await received.waitFor(({ uid }) => uid === 'ben', { timeoutMs: WAIT_MS });
  report.check('The debate space is back and has been told: Ben has left it.', !debate.isSignedIn('ben'));
}
