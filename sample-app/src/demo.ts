import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from './create-app.js';
import { bulkErasureSteps } from './demo/bulk-erasure-steps.js';
import { erasureSteps } from './demo/erasure-steps.js';
import { logoutSteps } from './demo/logout-steps.js';
import { Report } from './demo/report.js';
import { userListSteps } from './demo/user-list-steps.js';
import { startSimulatedService } from './simulated-service.js';

const DEADLINE_MS = 50_000;

/** Shows, without a window, what the app and the debate space do together. Exit code 0, or 1 when something is wrong. */
async function demo(report: Report): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'debate-space-demo-'));
  process.env.DEBATE_SPACE_STORAGE = `sqlite:${join(folder, 'debate-space.db')}`;
  await using simulator = await startSimulatedService(0);
  const app = await createApp({ logger: false, forceCloseConnections: true });
  try {
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    console.log(`The sample app runs at ${url}, the debate space at ${simulator.url}.`);
    await logoutSteps(report, app, simulator);
    await erasureSteps(report, app, simulator);
    await userListSteps(report, url);
    await bulkErasureSteps(report, app, simulator);
  } finally {
    // Delivers the logouts that are still under way.
    await app.close();
    await rm(folder, { recursive: true });
  }
  report.heading('In the end');
  const { all, logouts } = simulator.received;
  report.check(
    'Ada, whose session ended once, was logged out once.',
    logouts.filter((uid) => uid === 'ada').length === 1,
  );
  const erasures = all.filter(({ operation }) => operation === 'anonymize' || operation === 'delete');
  const isLoggedOutBefore = (erasure: (typeof all)[number]): boolean =>
    all
      .slice(0, all.indexOf(erasure))
      .some(({ operation, uid }) => operation === 'logout' && uid === erasure.uid);
  report.check('Anyone who was erased was logged out first.', erasures.every(isLoggedOutBefore));
}

const deadline = setTimeout(() => {
  console.error(`  ✗ The demo did not end within ${DEADLINE_MS / 1000} seconds.`);
  process.exit(1);
}, DEADLINE_MS);
const report = new Report();
try {
  await demo(report);
} catch (error) {
  report.check(
    `The demo went on to its end. (${error instanceof Error ? error.message : String(error)})`,
    false,
  );
}
clearTimeout(deadline);
console.log(report.failures === 0 ? '\nEverything as it should be.' : `\nWrong: ${report.failures}.`);
process.exit(report.failures === 0 ? 0 : 1);
