import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Host } from './host.js';
import type { LogoutTrial } from './logout-trial.js';

/** Longer than the lease of a claim, of which the last kill may have left some. */
const SETTLED_WITHIN_MS = 60_000;
const ASK_EVERY_MS = 1_000;

/** The states of the logouts that wait, by uid. */
export type WaitingStates = Readonly<Record<string, string>>;

/** Of those whose logouts have not arrived. */
export interface Settled {
  readonly waiting: readonly string[];
  readonly parked: readonly string[];
  readonly lost: readonly string[];
}

/**
 * Resolves when all that was promised has arrived, or waits in vain, or is nowhere any more.
 * @returns who still waits, who is parked, and whose logout is lost
 */
export async function settled(trial: LogoutTrial): Promise<Settled> {
  const deadline = performance.now() + (trial.scenario.settledWithinMs ?? SETTLED_WITHIN_MS);
  let before: readonly string[] | undefined;
  for (;;) {
    const states = await statesOf(trial.hosts, trial.compare().missing);
    const { missing } = trial.compare(); // it may have arrived since the question
    const inState = (state: string | undefined): string[] => missing.filter((uid) => states?.[uid] === state);
    const [waiting, parked, lost] = [inState('pending'), inState('parked'), inState(undefined)];
    const isLate = performance.now() > deadline;
    const isOpen = !states || waiting.length > 0;
    // On its way from one place to the other it may have been seen in neither.
    const isSure = lost.length === 0 || before?.join() === lost.join();
    if (isLate || (!isOpen && isSure)) return { waiting, parked, lost };
    before = states && lost;
    await sleep(ASK_EVERY_MS);
  }
}

/** `undefined` when not everybody answers. */
async function statesOf(hosts: readonly Host[], uids: readonly string[]): Promise<WaitingStates | undefined> {
  if (uids.length === 0) return {};
  const answers = await Promise.all(hosts.map((host) => host.ask({ uids })));
  return answers.includes(undefined) ? undefined : (Object.assign({}, ...answers) as WaitingStates);
}
