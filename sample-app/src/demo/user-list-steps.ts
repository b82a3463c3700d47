import type { UserPage } from 'nestjs-debate-space';
import { DEMO_PASSWORD } from '../login/demo-users.js';
import { Browser } from './browser.js';
import type { Report } from './report.js';

/** The user list, for administrators alone. */
export async function userListSteps(report: Report, url: string): Promise<void> {
  report.heading('The list of users');
  const ada = new Browser(url);
  await ada.logIn('ada', DEMO_PASSWORD);
  report.check('Ada may not read it (403).', (await ada.request('/admin/users')).status === 403);

  const admin = new Browser(url);
  await admin.logIn('admin', DEMO_PASSWORD);
  const response = await admin.request('/admin/users?page=1&per_page=2', {
    headers: { Accept: 'application/json' },
  });
  const { users, total, nextPage } = (await response.json()) as UserPage;
  const names = users.map(({ uid }) => uid ?? 'an anonymized user').join(' and ');
  report.check(`The administrator reads the first page: ${names}.`, users.length === 2);
  report.check('Three users are left, on two pages.', total === 3 && nextPage === 2);
}
