import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ErasureAccount } from './app.js';
import type { AppProcess } from './app-process.js';
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
export function playErasures(
  run: Run,
  engine: EngineName,
  kills: number,
  erasures: number,
): Promise<Outcome> {
  const uids = Array.from({ length: erasures }, (_, n) => `listed-${n}`);
  const others = uids.slice(erasures / 2).map((uid) => uid.replace('listed', 'other'));
  const list = { reference: 'kill -9', uids };
  return play(run, engine, { apps: 2, options }, async (trial) => {
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
      if (n < kills / 5)
        await sleep(trial.between(0, 10 * erasures)); // reading takes 10 ms for each user
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
  { status, receipts }: ErasureAccount,
  uids: readonly string[],
  others: readonly string[],
  doneAfter: number,
): Outcome {
  const { service, kills, wrong, notes, seconds } = trial;
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
  const count = (is: (uid: string) => boolean): number => uids.filter(is).length;
  const erased = count((uid) => !users.has(uid));
  const proven = count((uid) => receipts[uid]?.map(({ outcome }) => outcome).join() === 'erased');
  const repeated = [...requests.values()].reduce((sum, sent) => sum + sent - 1, 0);
  const { state, total, done } = status;
  if (erased < uids.length) wrong.push(`${uids.length - erased} users on the list are not erased`);
  if (proven < uids.length)
    wrong.push(`${uids.length - proven} users have not exactly one receipt, or another outcome`);
  if (state !== 'done' || total !== uids.length || done !== uids.length)
    wrong.push(`the list is ${state}: of ${uids.length} users ${total} are stored and ${done} done`);
  if (strangers > 0) wrong.push(`${strangers} times a user was touched who is not on the list`);
  if (unannounced > 0) wrong.push(`${unannounced} users were erased before they were logged out`);
  if (early > 0) wrong.push(`${early} requests came before the list was read to its end`);
  if (repeated > kills * CONCURRENCY)
    wrong.push(
      `${repeated} requests were repeated, and ${kills} kills explain ${kills * CONCURRENCY} at most`,
    );
  if (!(doneAfter <= DONE_WITHIN_SECONDS))
    wrong.push(`the list was done ${doneAfter} s after the last kill, not within ${DONE_WITHIN_SECONDS} s`);
  const row = {
    kills,
    users: uids.length,
    erased,
    proven,
    repeated,
    strangers,
    unannounced,
    early,
    doneAfter,
    seconds,
  };
  return { row, wrong, notes };
}
