import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DEMO_PASSWORD } from '../login/demo-users.js';
import { Browser } from './browser.js';
import type { Report } from './report.js';

/** What users may ask for under the GDPR, and who may not. */
export async function erasureSteps(
  report: Report,
  url: string,
  { users, debate, received }: DebateSpaceSimulator,
): Promise<void> {
  report.heading('Anonymising');
  const ben = new Browser(url);
  await ben.logIn('ben', DEMO_PASSWORD);
  const contributions = users.get('ben')?.contributions;
  const requests = received.count;
  const forged = await ben.submitWithoutToken('/me/anonymize');
  report.check('A form of another site, without the token, is refused with 403.', forged.status === 403);
  report.check('The debate space has heard nothing of it.', received.count === requests && users.has('ben'));

  await ben.submit('/me/anonymize');
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
  report.check('Ben is logged out here, too.', (await ben.open('/')).includes('Nobody is logged in'));

  report.heading('Deleting');
  const cleo = new Browser(url);
  await cleo.logIn('cleo', DEMO_PASSWORD);
  await cleo.submit('/me/delete');
  report.check('The debate space has deleted Cleo and all contributions.', users.wasDeleted('cleo'));
  report.check('Cleo is logged out here, too.', (await cleo.open('/')).includes('Nobody is logged in'));
  await cleo.logIn('cleo', DEMO_PASSWORD);
  report.check('Cleo can log in here again, and is not let into the debate.', !debate.isSignedIn('cleo'));
}
