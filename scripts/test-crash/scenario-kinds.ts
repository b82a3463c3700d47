import { killAtRandom, killServerAtRandom } from './disturbances.js';

export const DAY_MS = 24 * 60 * 60_000;

/**
 * An app waits for the storage for as long as it takes: what is proven is that an entry that was noted is not lost. An end
 * that goes on from memory, because this machine is busy with something else, a kill may lose.
 */
export const patient = { http: { timeoutMs: 1_000 }, logout: { storageTimeoutMs: 20_000 } };
/** As patient when time passes faster. Nothing of this is a promise about time. */
export const hurried = (speed: number) => ({
  http: { timeoutMs: 1_000 * speed },
  logout: { storageTimeoutMs: 20_000 * speed, giveUpAfterMs: 7 * DAY_MS },
});
export const impatient = { http: { timeoutMs: 1_000 } };

/** So many logouts of one app may be under way when it is killed: the default of `logout.concurrency`. */
const UNDER_WAY = 8;
/** Leases last 30 s; the other 5 s are for the start of an app, the poll of the runner and a busy machine. */
const TAKEN_UP_WITHIN_SECONDS = 30 + 5;
/** Of storages that lose nothing when apps are killed. */
export const ofDurable = {
  repeatsPerKill: UNDER_WAY,
  takenUpWithinSeconds: TAKEN_UP_WITHIN_SECONDS,
  options: patient,
  size: { kills: 12, endings: 600 },
  full: { kills: 100, endings: 5_000 },
  disturb: killAtRandom,
};
/** Of storages whose server is killed. */
export const ofKilledServer = {
  apps: 2,
  takenUpWithinSeconds: TAKEN_UP_WITHIN_SECONDS,
  options: impatient,
  size: { kills: 4, endings: 500 },
  full: { kills: 20, endings: 5_000 },
  disturb: killServerAtRandom,
};
