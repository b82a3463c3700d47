import { setTimeout as sleep } from 'node:timers/promises';
import type { ErasingTrial, Moment, Phase } from './erasing-trial.js';
import type { Host } from './host.js';

const MAX_BOOT_MS = 1_000;
/** So many of the kills meet the reading of the list, and so many the end. */
const READING = 1 / 5;
const ENDING = 1 / 6;
/** The end: so many users. */
const LAST = 8;

/**
 * `kill -9` at moments spread over the work until the last few users, each of another app in turn; now and then while it
 * boots.
 */
export async function killErasing(trial: ErasingTrial): Promise<void> {
  const { random, size } = trial;
  const { reading, ending } = sharesOf(size.kills);
  const early = Array.from({ length: reading }, () => ({ rows: random.from(1, size.erasures) }));
  const rest = Array.from({ length: size.kills - reading - ending }, () => ({
    erased: random.from(0, size.erasures - LAST),
  }));
  await killAt(trial, [...early, ...inOrder(rest)]);
}

/** The same while the last few are erased. What is killed then waits for its lease, and nothing else happens. */
export async function killEnding(trial: ErasingTrial): Promise<void> {
  const { random, size } = trial;
  const moment = (): Erased => ({ erased: random.from(size.erasures - LAST, size.erasures) });
  await killAt(trial, inOrder(Array.from({ length: sharesOf(size.kills).ending }, moment)));
}

interface Erased {
  readonly erased: number;
}

const sharesOf = (kills: number) => ({
  reading: Math.round(kills * READING),
  ending: Math.round(kills * ENDING),
});
const inOrder = (moments: readonly Erased[]): Erased[] =>
  moments.toSorted((one, other) => one.erased - other.erased);

async function killAt(trial: ErasingTrial, moments: readonly Moment[]): Promise<void> {
  const { hosts, random } = trial;
  const kill = async (host: Host): Promise<void> => {
    trial.noteKill();
    trial.met[phaseOf(trial)] += 1;
    await host.end();
  };
  const plague = async (host: Host, own: readonly Moment[]): Promise<void> => {
    for (const moment of own) {
      await trial.reaches(host, moment);
      if (trial.stalled) return;
      if (random.next() < 1 / 2) await sleep(random.from(1, 30));
      await kill(host);
      if (random.next() < 1 / 10) {
        void trial.begin(host);
        await sleep(random.from(0, MAX_BOOT_MS));
        await kill(host);
      }
      await trial.begin(host);
    }
  };
  const ofHost = (n: number): Moment[] => moments.filter((_, m) => m % hosts.length === n);
  await Promise.all(hosts.map((host, n) => plague(host, ofHost(n))));
}

/** The same while there is no list: at moments spread over the work until the last few. */
export async function killRequesting(trial: ErasingTrial): Promise<void> {
  const { hosts, random, size } = trial;
  const moments = Array.from({ length: size.kills }, () => random.from(0, size.erasures - LAST));
  for (const [n, erased] of moments.toSorted((one, other) => one - other).entries()) {
    const host = hosts[n % hosts.length] ?? trial.firstHost;
    await trial.reaches(host, { erased });
    await sleep(random.from(1, 100));
    trial.noteKill();
    await host.end();
    await trial.begin(host);
  }
}

function phaseOf({ erased, requested, size: { erasures } }: ErasingTrial): Phase {
  if (erased >= erasures - LAST) return 'ending';
  return requested ? 'carrying out' : 'reading';
}
