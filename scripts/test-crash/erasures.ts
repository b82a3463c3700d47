import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ErasureAccount } from './app.js';
import type { AppProcess } from './app-process.js';
import type { Size } from './disturbances.js';
import type { EngineName } from './engines.js';
import { play, type Outcome, type Run, type Trial } from './trial.js';

/** How many erasures of one app may be under way when it is killed. */
const CONCURRENCY = 4;
const DONE_WITHIN_SECONDS = 30 + 15;
const GIVEN_UP_AFTER_MS = 90_000;
const options = {
  http: { timeoutMs: 1_000, totalTimeoutMs: 1_000, rateLimit: false as const },
  erasure: { concurrency: CONCURRENCY },
};

/** Two apps erase a list of users. They are killed in turn: some times while they read the list, then while they erase. */
export function playErasures(run: Run, engine: EngineName, [kills, erasures]: Size): Promise<Outcome> {
  const uids = Array.from({ length: erasures }, (_, n) => `listed-${n}`);
  const others = uids.slice(erasures / 2).map((uid) => uid.replace('listed', 'other'));
  const list = { reference: 'kill -9', uids };
  return play(run, engine, { options }, async (trial) => {
    const { users } = trial.service;
    for (const uid of [...uids, ...others]) users.add({ uid });
    const erased = async (count: number): Promise<void> => {
      const deadline = performance.now() + GIVEN_UP_AFTER_MS;
      const left = uids.length + others.length - count;
      while (users.count > left && performance.now() < deadline) await sleep(10);
    };
    const start = async (app: AppProcess): Promise<void> => {
      await app.start();
      void app.ask('erase', list);
    };
    await Promise.all(trial.apps.map(start));
    for (let n = 0; n < kills; n += 1) {
      const isReading = n < kills / 5; // which takes 10 ms for each user
      if (isReading) await sleep(trial.between(0, 10 * erasures));
      else await erased(((n - kills / 5) / kills) * erasures);
      for (const app of trial.apps.filter((_, i) => i === n % 2)) {
        await trial.kill(app);
        await start(app);
      }
    }
    await erased(erasures);
    const [app] = trial.apps;
    const ask = (uids: readonly string[]): Promise<ErasureAccount | undefined> | undefined =>
      app?.ask<ErasureAccount>('account', { ...list, uids });
    const deadline = performance.now() + GIVEN_UP_AFTER_MS;
    while (!(await ask([]))?.status.finishedAt && performance.now() < deadline) await sleep(500);
    const doneAfter = Math.ceil((Date.now() - (trial.lastKillAt ?? NaN)) / 1000);
    const account = await ask(uids);
    if (!account) throw new Error('the app does not answer');
    return judge(trial, account, uids, others, doneAfter);
  });
}

function judge(
  trial: Trial,
  { status, proven }: ErasureAccount,
  uids: readonly string[],
  others: readonly string[],
  doneAfter: number,
): Outcome {
  const { service, kills, wrong, notes } = trial;
  const { users, received } = service;
  const requests = new Map<string | undefined, number>();
  const loggedOut = new Set<string | undefined>();
  const isListed = new Set<string | undefined>(uids);
  const readAt = trial.heard('list-read')[0]?.at ?? Infinity;
  let [unannounced, early, strangers] = [0, 0, others.filter((uid) => !users.has(uid)).length];
  for (const { operation, accepted, uid, at } of received.all) {
    if (operation === 'logout' && accepted) loggedOut.add(uid);
    if (operation === 'logout' || operation === 'delete') strangers += isListed.has(uid) ? 0 : 1;
    if (operation !== 'delete') continue;
    requests.set(uid, (requests.get(uid) ?? 0) + 1);
    unannounced += loggedOut.has(uid) ? 0 : 1;
    early += at < readAt ? 1 : 0;
  }
  const erased = uids.filter((uid) => !users.has(uid)).length;
  const repeated = [...requests.values()].reduce((sum, sent) => sum + sent - 1, 0);
  const { state, total, done } = status;
  const all = uids.length;
  const most = kills * CONCURRENCY;
  const violations: readonly (readonly [isWrong: boolean, words: string])[] = [
    [erased < all, `${all - erased} users on the list are not erased`],
    [proven < all, `${all - proven} users have not exactly one receipt, or another outcome`],
    [
      state !== 'done' || total !== all || done !== all,
      `it is ${state}: of ${all} users ${total} are stored, ${done} done`,
    ],
    [strangers > 0, `${strangers} times a user was touched who is not on the list`],
    [unannounced > 0, `${unannounced} users were erased before they were logged out`],
    [early > 0, `${early} requests came before the list was read to its end`],
    [repeated > most, `${repeated} requests were repeated, and ${kills} kills explain ${most} at most`],
    [
      !(doneAfter <= DONE_WITHIN_SECONDS),
      `it was done ${doneAfter} s after the last kill, not within ${DONE_WITHIN_SECONDS}`,
    ],
  ];
  wrong.push(...violations.flatMap(([isWrong, words]) => (isWrong ? [words] : [])));
  const columns = { kills, users: all, erased, proven, repeated, strangers, unannounced, early };
  return { row: { ...columns, doneAfter }, wrong, notes };
}
