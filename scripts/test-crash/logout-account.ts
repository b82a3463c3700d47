import type { LogoutScenario } from './scenario.js';

/**
 * What is counted of a trial of logouts, and what it is called. `lost`: the answer said that the user is logged out, and the
 * service never heard of it. `unanswered`: the session ended, and the app died before its answer. `invented`: reported
 * while the session lived.
 */
export const logoutColumns = {
  scenario: 'scenario',
  kills: 'kills',
  asked: 'asked',
  acknowledged: 'acknowledged',
  delivered: 'delivered',
  lost: 'lost',
  unanswered: 'unanswered',
  unansweredLost: 'of these lost',
  duplicates: 'duplicates',
  invented: 'invented',
  waiting: 'waiting',
  parked: 'parked',
  refused: 'refused',
  slowestMs: 'slowest ms',
  takenUpSeconds: 'taken up s',
  degraded: 'degraded',
  seconds: 'seconds',
};

type Count = Exclude<keyof typeof logoutColumns, 'scenario' | 'takenUpSeconds'>;

export type LogoutResult = Readonly<Record<Count, number>> & {
  readonly scenario: string;
  /** `undefined` when nothing was killed. */
  readonly takenUpSeconds: number | undefined;
  readonly lostUids: readonly string[];
};

/** What is wrong with a result, in plain words. */
export function logoutViolations(
  { mayLose = false, sessionMs, repeatsPerKill = Infinity, takenUpWithinSeconds = Infinity }: LogoutScenario,
  result: LogoutResult,
): string[] {
  const { kills, duplicates, lost, lostUids, unansweredLost, invented, refused, waiting, parked } = result;
  const { takenUpSeconds } = result;
  const words: string[] = [];
  if (lost > 0 && !mayLose)
    words.push(`${lost} acknowledged logouts are gone, such as that of ${lostUids.slice(0, 3).join(', ')}`);
  if (sessionMs !== undefined && unansweredLost > 0)
    words.push(`${unansweredLost} ended sessions were not found by the sweep`);
  if (invented > 0) words.push(`${invented} users were reported while their session lived`);
  if (refused > 0) words.push(`${refused} logouts were answered with something else than 200`);
  if (waiting > 0) words.push(`${waiting} acknowledged logouts still wait although the service is up`);
  if (parked > 0) words.push(`${parked} acknowledged logouts are parked although nothing is wrong with them`);
  if (duplicates > kills * repeatsPerKill)
    words.push(
      `${duplicates} logouts arrived again, and ${kills} kills explain ${kills * repeatsPerKill} at most`,
    );
  if (takenUpSeconds !== undefined && takenUpSeconds > takenUpWithinSeconds)
    words.push(
      `what the last kill left was delivered after ${takenUpSeconds} s, not within ${takenUpWithinSeconds}`,
    );
  return words;
}
