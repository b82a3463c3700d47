import { DebateSpaceErasures, DebateSpaceOutbox, type ParkedLogout } from 'nestjs-debate-space';
import { messageOf } from '../failure.js';
import { openableOutbox } from '../outbox-setting.js';
import { bootPlugin } from '../plugin-app.js';
import type { Settings } from '../settings.js';
import { counted, duration, shown } from '../text.js';
import { variables } from '../variables.js';
import { fault, fine, unchecked, type CheckResult } from './check.js';

const CHECKS = ['outbox-settings', 'pending', 'parked', 'erasures'];
const LONG_MS = 60_000;
const MOST_PARKED = 1000;

/** Opens the outbox, and looks. Nothing is sent from it. */
export async function* checkOutbox(settings: Settings): AsyncGenerator<CheckResult> {
  if (settings.outbox.engine === 'memory') {
    yield fine('outbox', `memory; to see the one that your app uses, set ${variables.outbox}`);
    for (const check of CHECKS) yield unchecked(check, 'an outbox in memory is seen by its own process only');
    return;
  }
  let app;
  try {
    // Any address will do: whatever is wrong with the real one, the outbox can be looked at.
    const somewhere = { ...settings, authUrl: 'http://localhost', baseUrl: undefined };
    app = await bootPlugin(somewhere, await openableOutbox(settings.outbox), false, false);
  } catch (error) {
    yield fault(
      'outbox',
      messageOf(error),
      `See docs/operations.md, "Choosing an engine", and compare ${variables.outbox}.`,
    );
    for (const check of CHECKS) yield unchecked(check, 'the outbox cannot be opened');
    return;
  }
  try {
    const outbox = app.get(DebateSpaceOutbox);
    yield* checkEngine(outbox, settings.outbox.engine);
    yield* checkLogouts(outbox);
    yield await checkErasures(app.get(DebateSpaceErasures));
  } finally {
    await app.close();
  }
}

/** What the engine itself warns of at boot. */
function* checkEngine(outbox: DebateSpaceOutbox, engine: string): Generator<CheckResult> {
  yield fine('outbox', `${engine} opens`);
  if (outbox.warnings.length === 0) yield fine('outbox-settings', 'nothing to warn of');
  for (const warning of outbox.warnings) {
    yield fault('outbox-settings', warning, 'See docs/operations.md, "Choosing an engine".');
  }
}

async function* checkLogouts(outbox: DebateSpaceOutbox): AsyncGenerator<CheckResult> {
  const { pending, oldestPendingMs: oldest = 0 } = await outbox.stats();
  const waiting = `${counted(pending, 'logout')} waiting`;
  yield oldest <= LONG_MS
    ? fine('pending', waiting)
    : fault(
        'pending',
        `${waiting}, the oldest for ${duration(oldest)}`,
        'Does an app that shares this outbox run, and does the service answer it? Its log says why they wait.',
      );
  const parked = await outbox.parked({ limit: MOST_PARKED });
  yield parked.length === 0 ? fine('parked', 'none') : parkedFault(parked);
}

function parkedFault(parked: readonly ParkedLogout[]): CheckResult {
  const causes = [...new Set(parked.map(({ cause }) => cause))].join(', ');
  const cures = [...new Set(parked.map(({ cure }) => cure))].join(' ');
  const least = parked.length === MOST_PARKED ? 'at least ' : '';
  return fault(
    'parked',
    `${least}${counted(parked.length, 'logout')} parked (${causes})`,
    `${cures} Then: debate-space outbox replay --all`,
  );
}

async function checkErasures(erasures: DebateSpaceErasures): Promise<CheckResult> {
  const late: string[] = [];
  let waiting = 0;
  for await (const { reference, state, failed, waiting: left } of erasures.list()) {
    waiting += left;
    if (failed > 0 || state === 'overdue') late.push(reference);
  }
  if (late.length === 0) return fine('erasures', `${counted(waiting, 'user')} waiting`);
  return fault(
    'erasures',
    `overdue or failed: ${late.map(shown).join(', ')}`,
    'Look with: debate-space erasures status <reference>; mend the cause that the log of your app names, then: debate-space erasures resume <reference>',
  );
}
