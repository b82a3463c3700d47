// A host that works for long, on each storage: browsers log in and out, users are erased, the service is away now and then, and
// one of two apps is restarted. Exit code 0: heap and handles of the other app stay flat, nothing is lost, nobody is left.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { messageOf } from './caught.js';
import { ofPart, slopePerHour, type Sample } from './soak/slope.js';
import { compileApp, type AppProcess } from './test-crash/app-process.js';
import { Cleanup } from './test-crash/cleanup.js';
import { durableEngines, type EngineName } from './test-crash/engines.js';
import { browse } from './test-crash/load.js';
import { judge, settle } from './test-crash/logouts.js';
import { play, type Outcome, type Run, type Trial } from './test-crash/trial.js';

const engines: readonly EngineName[] = ['memory', ...durableEngines];
const CYCLES = 8;
const MEASUREMENTS_PER_CYCLE = 6;
const LEAVERS_PER_CYCLE = 5;
/** How much the caches and the compiler of V8 still grow after the warm-up. */
const HEAP_SLACK_MB = 4;
/** Connections that are open at one moment, and at another are not. */
const HANDLES_SLACK = 20;
const ERASED_WITHIN_MS = 60_000;
// A history is kept by days, and would grow all the time. The apps wait for the storage, so that a busy machine loses nothing.
const options = { http: { timeoutMs: 1_000 }, logout: { historyRetentionMs: 0, storageTimeoutMs: 20_000 } };

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, storage: { type: 'string', multiple: true } },
});
const run: Run = { program: compileApp(), cleanup: new Cleanup() };
const chosen = engines.filter((engine) => values.storage?.includes(engine) ?? true);
const verdicts = await Promise.all(chosen.map(report));
process.exit(verdicts.length > 0 && verdicts.every(Boolean) ? 0 : 1);

async function report(engine: EngineName): Promise<boolean> {
  try {
    const { row, wrong } = await play(run, engine, { options }, soak);
    console.table({ [engine]: row });
    for (const words of wrong) console.error(`VIOLATED by ${engine}: ${words}`);
    return wrong.length === 0;
  } catch (error) {
    console.error(`${engine}: ${messageOf(error)}`);
    return false;
  }
}

async function soak(trial: Trial): Promise<Outcome> {
  const [steady, restarted] = trial.apps;
  if (!steady || !restarted) throw new Error('two apps are needed');
  const totalMs = Number(values.minutes) * 60_000;
  const samples = { heap: [] as Sample[], handles: [] as Sample[] };
  const leavers: string[] = [];
  await Promise.all(trial.apps.map((app) => app.start()));
  const end = new AbortController();
  const load = browse(trial, { browsers: 4, pauseMs: 150 }, end.signal);
  await sleep(totalMs / 5); // the warm-up
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    const cycleMs = (totalMs * 0.8) / CYCLES;
    const uids = Array.from({ length: LEAVERS_PER_CYCLE }, (_, n) => `leaver-${cycle}-${n}`);
    leavers.push(...uids);
    await Promise.all([
      erase(trial, steady, uids),
      disturb(trial, restarted, cycleMs),
      measure(steady, samples, cycleMs),
    ]);
  }
  end.abort();
  await load;
  await settle(trial);
  const isLeft = (uid: string): boolean => trial.service.users.has(uid);
  const deadline = Date.now() + ERASED_WITHIN_MS;
  while (leavers.some(isLeft) && Date.now() < deadline) await sleep(500);

  const { row, wrong, notes } = judge(trial);
  const left = leavers.filter(isLeft).length;
  const violations = [...wrong];
  if (left > 0) violations.push(`${left} users are not erased`);
  for (const [name, slack] of [
    ['heap', HEAP_SLACK_MB],
    ['handles', HANDLES_SLACK],
  ] as const) {
    const [early, late] = [ofPart(samples[name], 0), ofPart(samples[name], 2)];
    if (samples[name].length < CYCLES) violations.push(`${name}: only ${samples[name].length} measurements`);
    if (late > early * 1.1 + slack) violations.push(`${name} grew from ${early} to ${late}`);
  }
  const heapPerHour = Number(slopePerHour(samples.heap).toFixed(1));
  const handlesPerHour = Number(slopePerHour(samples.handles).toFixed(1));
  const more = { erased: leavers.length - left, heapPerHour, handlesPerHour };
  return { row: { ...row, ...more }, wrong: violations, notes };
}

async function erase({ service, ledger }: Trial, app: AppProcess, uids: readonly string[]): Promise<void> {
  for (const uid of uids) {
    service.users.add({ uid });
    ledger.account(uid).requestedAt = Date.now(); // an erasure logs the user out as well
  }
  await app.ask('erase', { reference: uids.join(' '), uids });
}

/** The service is away for a while, then the other app is restarted. */
async function disturb({ service }: Trial, app: AppProcess, cycleMs: number): Promise<void> {
  await sleep(cycleMs / 4);
  await service.goDown();
  await sleep(cycleMs / 8);
  await service.comeBack();
  await sleep(cycleMs / 4); // whatever the app had in memory is delivered by then
  await app.end('SIGTERM');
  await app.start();
  await sleep(cycleMs / 4);
}

async function measure(
  app: AppProcess,
  samples: Readonly<Record<'heap' | 'handles', Sample[]>>,
  cycleMs: number,
): Promise<void> {
  for (let n = 0; n < MEASUREMENTS_PER_CYCLE; n += 1) {
    await sleep(cycleMs / MEASUREMENTS_PER_CYCLE);
    const measured = await app.ask<Record<'heapMb' | 'handles', number>>('measure');
    if (!measured) continue;
    samples.heap.push({ at: Date.now(), value: measured.heapMb });
    samples.handles.push({ at: Date.now(), value: measured.handles });
  }
}
