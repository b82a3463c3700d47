import {
  DebateSpaceErasures,
  DebateSpaceOptionsError,
  DebateSpaceOutbox,
  type ParkedLogout,
  type StorageWarning,
} from 'nestjs-debate-space';
import { Failure, messageOf } from '../failure.js';
import { bootPlugin } from '../plugin-app.js';
import type { Settings } from '../settings.js';
import { connectStorage, type StorageConnection } from '../storage.js';
import { counted, duration, shown } from '../text.js';
import { textInVariables, variables } from '../variables.js';
import { fault, fine, unchecked, type CheckResult } from './check.js';

const CHECKS = ['storage-settings', 'pending', 'parked', 'erasures'];
const LONG_MS = 60_000;
const MAX_PARKED = 1000;
const COMPARE = `compare ${variables.storage} with the storage of your app`;
const PAGE = 'docs/troubleshooting.md';

/** Opens the storage, and looks. Nothing is sent from it. */
export async function* checkStorage(settings: Settings): AsyncGenerator<CheckResult> {
  const { engine } = settings.storage;
  if (engine === 'memory') {
    yield fine('storage', `memory; to see the one that your app uses, set ${variables.storage}`);
    for (const check of CHECKS) yield unchecked(check, 'a storage in memory is seen by its own process only');
    return;
  }
  let connection: StorageConnection | undefined;
  let app;
  try {
    connection = await connectStorage(settings.storage);
    // Any address will do: whatever is wrong with the real one, the storage can be looked at.
    const somewhere = { ...settings, authUrl: 'http://localhost', baseUrl: undefined };
    app = await bootPlugin(somewhere, connection.engine, false, false);
  } catch (error) {
    await connection?.close();
    yield notOpened(error);
    for (const check of CHECKS) yield unchecked(check, 'the storage cannot be opened');
    return;
  }
  try {
    const outbox = app.get(DebateSpaceOutbox);
    yield* checkEngine(outbox, engine);
    yield* checkLogouts(outbox);
    yield await checkErasures(app.get(DebateSpaceErasures));
  } finally {
    await app.close();
    await connection.close();
  }
}

function notOpened(error: unknown): CheckResult {
  // `values` has each of its problems.
  if (error instanceof DebateSpaceOptionsError) return unchecked('storage', 'a value is missing or wrong');
  if (error instanceof Failure) return fault('storage', error.problem, error.hint ?? COMPARE);
  const { problem = messageOf(error), hint = COMPARE } = Object(error) as Partial<StorageWarning>;
  return fault('storage', problem, `${textInVariables(hint)}. ${PAGE} explains this line under "Storage".`);
}

/** What the engine itself warns of at boot. */
function* checkEngine(outbox: DebateSpaceOutbox, engine: string): Generator<CheckResult> {
  yield fine('storage', `${engine} opens`);
  if (outbox.warnings.length === 0) yield fine('storage-settings', 'nothing to warn of');
  for (const { problem, hint } of outbox.warnings) yield fault('storage-settings', problem, hint);
}

async function* checkLogouts(outbox: DebateSpaceOutbox): AsyncGenerator<CheckResult> {
  const { pending, oldestPendingMs: oldest = 0 } = await outbox.stats();
  const waiting = `${counted(pending, 'logout')} waiting`;
  yield oldest <= LONG_MS
    ? fine('pending', waiting)
    : fault(
        'pending',
        `${waiting}, the oldest for ${duration(oldest)}`,
        `See that an app that shares this storage runs and reaches the service; ${PAGE} has the lines of its log under "Logouts". Then look again with: debate-space outbox stats`,
      );
  const parked = await outbox.parked({ limit: MAX_PARKED });
  yield parked.length === 0 ? fine('parked', 'none') : parkedFault(parked);
}

function parkedFault(parked: readonly ParkedLogout[]): CheckResult {
  const causes = [...new Set(parked.map(({ cause }) => cause))].join(', ');
  const hints = [...new Set(parked.map(({ hint }) => textInVariables(hint)))].join('; ');
  const least = parked.length === MAX_PARKED ? 'at least ' : '';
  return fault(
    'parked',
    `${least}${counted(parked.length, 'logout')} parked (${causes})`,
    `${hints}. ${PAGE} has the causes under "Causes of a parked logout". See them with: debate-space outbox parked; then: debate-space outbox retry --all`,
  );
}

async function checkErasures(erasures: DebateSpaceErasures): Promise<CheckResult> {
  const late: string[] = [];
  let waiting = 0;
  for await (const erasure of erasures.list()) {
    waiting += erasure.waiting;
    if (erasure.state === 'overdue' || erasure.failed > 0) late.push(erasure.reference);
  }
  if (late.length === 0) return fine('erasures', `${counted(waiting, 'user')} waiting`);
  return fault(
    'erasures',
    `overdue or failed: ${late.map(shown).join(', ')}`,
    `Look with: debate-space erasures status <reference>; fix the cause that the log of your app names (${PAGE}, "Causes of a failed erasure"), then: debate-space erasures retry <reference>`,
  );
}
