import type { INestApplication } from '@nestjs/common';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { DebateSpaceErasures } from 'nestjs-debate-space';
import { lastValueFrom, timeout } from 'rxjs';
import { DEMO_PASSWORD } from '../login/demo-users.js';
import { Browser } from './browser.js';
import type { Report } from './report.js';

const WAIT_MS = 15_000;
const LEAVERS = Array.from({ length: 20 }, (_, index) => `leaver-${index + 1}`);

/** A list of users who are to be deleted, as administrators upload it. */
export async function bulkErasureSteps(
  report: Report,
  app: INestApplication,
  { users }: DebateSpaceSimulator,
): Promise<void> {
  report.heading('Deleting many');
  for (const uid of LEAVERS) users.add({ uid });
  const before = users.count;
  const list = new File(
    [['uid', ...LEAVERS, LEAVERS[0], 'never-registered', 'admin'].join('\n')],
    'leavers.csv',
  );
  const form = { mode: 'delete', reference: 'leavers', confirmation: 'delete' };
  const admin = new Browser(await app.getUrl());
  await admin.logIn('admin', DEMO_PASSWORD);

  const counted = await (await admin.upload('/admin/erasures/dry-run', form, list)).text();
  const figures = ['Different users</dt><dd>22<', 'Not found</dt><dd>1<'];
  report.check(
    'The administrator has the list counted: 22 users, one of them not registered.',
    figures.every((figure) => counted.includes(figure)),
  );
  report.check('Nothing has changed by that.', users.count === before);

  const answer = await admin.upload('/admin/erasures', form, list);
  report.check('The list is uploaded, and its progress shown.', answer.status === 303);
  const progress = app.get(DebateSpaceErasures).progress('leavers');
  const { done, notFound, vetoed } = await lastValueFrom(progress.pipe(timeout(WAIT_MS)));
  report.check(`Deleted: ${done}. Not found: ${notFound}.`, done === 20 && notFound === 1);
  report.check('The administrator is kept, by a veto of the app.', vetoed === 1 && users.has('admin'));
  report.check('Nobody else is gone.', users.count === before - 20);

  const receipts = await (await admin.request('/admin/erasure/receipts?reference=leavers')).text();
  report.check(
    'There is a receipt for each, and no user name in it.',
    receipts.trimEnd().split('\n').length === 22 && !receipts.includes('leaver-'),
  );
}
