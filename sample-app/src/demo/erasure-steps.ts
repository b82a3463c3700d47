import type { INestApplication } from '@nestjs/common';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { lastValueFrom, timeout } from 'rxjs';
import { DEMO_PASSWORD } from '../login/demo-users.js';
import { Browser } from './browser.js';
import type { Report } from './report.js';

const WAIT_MS = 15_000;

/** What users may ask for under the GDPR, and who may not. */
export async function erasureSteps(
  report: Report,
  app: INestApplication,
  { users, debate, received }: DebateSpaceSimulator,
): Promise<void> {
  const url = await app.getUrl();
  const isOver = async (receipt: Response): Promise<void> => {
    const reference = receipt.headers.get('location')?.replace('/receipts/', '') ?? '';
    await lastValueFrom(app.get(DebateSpaceErasures).progress(reference).pipe(timeout(WAIT_MS)));
  };

  report.heading('Seeing what there is');
  const ben = new Browser(url);
  await ben.logIn('ben', DEMO_PASSWORD);
  const file = (await (await ben.request('/me/data')).json()) as { email?: string };
  report.check('Ben downloads what the debate space has about him.', file.email === users.get('ben')?.email);

  report.heading('Anonymizing');
  const contributions = users.get('ben')?.contributions;
  const requests = received.count;
  const forged = await ben.submitWithoutToken('/me/anonymize', { confirmation: 'ben' });
  report.check('A form of another site, without the token, is refused with 403.', forged.status === 403);
  const mistyped = await ben.submit('/me/anonymize', { confirmation: 'cleo' });
  report.check('Ben types another name to confirm it: refused with 422.', mistyped.status === 422);
  report.check('The debate space has heard nothing of it.', received.count === requests && users.has('ben'));

  const answer = await ben.submit('/me/anonymize', { confirmation: 'ben' });
  await isOver(answer);
  const anonymous = users.all().find(({ uid }) => uid === null);
  report.check('The debate space no longer knows Ben by user name.', !users.has('ben'));
  report.check(
    'Name and e-mail address are gone.',
    anonymous?.first_name === null && anonymous.email === null,
  );
  report.check(
    `All ${contributions ?? 0} contributions are kept.`,
    anonymous?.contributions === contributions,
  );
  report.check('Ben is logged out here, too.', (await ben.open('/')).includes('>Log in</h1>'));
  const receipt = await new Browser(url).open(answer.headers.get('location') ?? '');
  report.check(
    'The receipt says so, without a login and without a name.',
    receipt.includes('erased (answer 200)') && !/\bben\b/i.test(receipt),
  );

  report.heading('Deleting');
  const cleo = new Browser(url);
  await cleo.logIn('cleo', DEMO_PASSWORD);
  await isOver(await cleo.submit('/me/delete', { confirmation: 'cleo' }));
  report.check('The debate space has deleted Cleo and all contributions.', users.wasDeleted('cleo'));
  report.check('Cleo is logged out here, too.', (await cleo.open('/')).includes('>Log in</h1>'));
  await cleo.logIn('cleo', DEMO_PASSWORD);
  report.check('Cleo can log in here again, and is not let into the debate.', !debate.isSignedIn('cleo'));
}
