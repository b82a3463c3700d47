import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Disturbance, Size } from './disturbances.js';
import type { EngineName } from './engines.js';
import { browse } from './load.js';
import { play, type Outcome, type Run, type Trial } from './trial.js';

/** A lease lasts 30 s; 5 s are for the start of an app, the poll of its runner and a busy machine. */
const DUE_AGAIN_WITHIN_SECONDS = 30 + 5;
const SETTLED_WITHIN_MS = 60_000;

/** Browsers log out while something goes wrong. Then what the apps answered must have been true. */
export function playLogouts(run: Run, engine: EngineName, what: Disturbance, size: Size): Promise<Outcome> {
  return play(run, engine, what, async (trial) => {
    await Promise.all(trial.apps.map((app) => app.start()));
    const end = new AbortController();
    const load = browse(trial, what, end.signal);
    await Promise.all([what.play(trial, size), trial.ledger.more(size[1])]);
    end.abort();
    await load;
    await settle(trial);
    return judge(trial, what.repeatsPerKill);
  });
}

/** Waits until the logouts have arrived that were answered. */
export async function settle({ ledger }: Trial): Promise<void> {
  const deadline = performance.now() + SETTLED_WITHIN_MS;
  while (ledger.missing > 0 && performance.now() < deadline) await sleep(200);
}

export function judge(trial: Trial, repeatsPerKill = Infinity): Outcome {
  const { ledger, kills, lastKillAt, wrong, notes } = trial;
  const { lost, invented, repeated, ...counts } = ledger.count();
  const dueAgain = lastKillAt && Math.ceil(ledger.lateMs(lastKillAt) / 1000);
  if (lost > 0) wrong.push(`${lost} answered logouts never arrived`);
  if (invented > 0) wrong.push(`${invented} users were reported while their session lived`);
  if (ledger.refused > 0) wrong.push(`${ledger.refused} logouts got a wrong answer`);
  if (repeated > kills * repeatsPerKill)
    wrong.push(
      `${repeated} logouts arrived again, and ${kills} kills explain ${kills * repeatsPerKill} at most`,
    );
  if (dueAgain && dueAgain > DUE_AGAIN_WITHIN_SECONDS)
    wrong.push(
      `a logout arrived ${dueAgain} s after the last kill, not within ${DUE_AGAIN_WITHIN_SECONDS} s`,
    );
  const faults = wrong.length > 0 ? trial.heard('fault').map(({ detail }) => detail) : [];
  const row = { kills, ...counts, lost, repeated, invented, dueAgain };
  return { row, wrong, notes: [...notes, ...new Set(faults)] };
}
