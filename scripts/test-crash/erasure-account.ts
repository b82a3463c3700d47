import type { DebateSpaceSimulator, ReceivedRequest } from 'debate-space-simulator';
import type { ErasureMode, ErasureReceipt, ErasureStatus } from 'nestjs-debate-space';
import type { ErasureScenario } from './scenario.js';

/** What is counted of a trial of erasures, and what it is called. */
export const erasureColumns = {
  scenario: 'scenario',
  kills: 'kills',
  asked: 'asked',
  erased: 'erased',
  requests: 'requests',
  repeated: 'repeated',
  attempts: 'attempts in receipts',
  receipts: 'receipts',
  unproven: 'unproven',
  uncounted: 'uncounted',
  touched: 'touched',
  unannounced: 'unannounced',
  early: 'early',
  waiting: 'waiting',
  settledSeconds: 'settled s',
  seconds: 'seconds',
};

export type ReceiptsOfUsers = Readonly<Record<string, readonly ErasureReceipt[]>>;

/** What an app says at the end. */
export interface ErasureAccount {
  readonly status: ErasureStatus;
  readonly receipts: readonly ErasureReceipt[];
  readonly ofUser: ReceiptsOfUsers;
}

interface Known {
  readonly service: DebateSpaceSimulator;
  readonly listed: readonly string[];
  readonly others: readonly string[];
  readonly mode: ErasureMode;
  /** When an app had read the list to its end for the first time. */
  readonly listReadAt: number;
}

type ErasureCounts = Readonly<
  Record<Exclude<keyof typeof erasureColumns, 'scenario' | 'kills' | 'settledSeconds' | 'seconds'>, number>
> & { readonly status: ErasureStatus };

/** When the work was done: how long after the last kill. */
export type Lateness = Readonly<Record<'settledSeconds', number>>;

export type ErasureResult = ErasureCounts &
  Lateness & { readonly scenario: string; readonly kills: number; readonly seconds: number };

/** How many of one app may be under way when it is killed, and have to be repeated: `erasure.concurrency`. */
export const AT_ONCE = 4;

/** What the receipts say, against what the service has seen. */
export function compareErasures(account: ErasureAccount, known: Known): ErasureCounts {
  const { status, receipts, ofUser } = account;
  const { service, listed, others, mode, listReadAt } = known;
  const requests = service.received.of(mode);
  const times = new Map<string | undefined, number>();
  for (const { uid } of requests) times.set(uid, (times.get(uid) ?? 0) + 1);
  const ofReference = new Set(receipts.map(({ uidHash }) => uidHash));
  const isProven = (uid: string): boolean => {
    const [receipt, ...more] = ofUser[uid] ?? [];
    return receipt?.outcome === 'erased' && ofReference.has(receipt.uidHash) && more.length === 0;
  };
  const attemptsOf = (uid: string): number =>
    (ofUser[uid] ?? []).reduce((sum, { attempts }) => sum + attempts, 0);
  const isListed = new Set(listed);
  const strangers = service.received.all.filter(({ uid }) => uid !== undefined && !isListed.has(uid));
  return {
    asked: listed.length,
    erased: listed.filter((uid) => !service.users.has(uid)).length,
    requests: requests.length,
    repeated: requests.length - times.size,
    attempts: receipts.reduce((sum, { attempts }) => sum + attempts, 0),
    receipts: receipts.length,
    /** Without exactly one receipt of its own that says that it was erased. */
    unproven: listed.filter((uid) => !isProven(uid)).length,
    /** More requests than the receipt knows of. */
    uncounted: listed.filter((uid) => attemptsOf(uid) < (times.get(uid) ?? 0)).length,
    /** Gone, or named in a request, and not on the list. */
    touched: others.filter((uid) => !service.users.has(uid)).length + strangers.length,
    unannounced: unannounced(service.received.all, mode),
    early: requests.filter(({ at }) => at < listReadAt).length,
    waiting: status.waiting,
    status,
  };
}

/** How many were erased without a logout that the service took before. */
export function unannounced(received: readonly ReceivedRequest[], mode: ErasureMode): number {
  const loggedOut = new Set<string | undefined>();
  const without = new Set<string | undefined>();
  for (const { operation, accepted, uid } of received) {
    if (operation === 'logout' && accepted) loggedOut.add(uid);
    if (operation === mode && !loggedOut.has(uid)) without.add(uid);
  }
  return without.size;
}

/** What is wrong with when the work was done, in plain words. */
export function lateness({ settledWithinSeconds }: ErasureScenario, { settledSeconds }: Lateness): string[] {
  if (!(settledSeconds > settledWithinSeconds)) return [];
  return [`it was done ${settledSeconds} s after the last kill, and not within ${settledWithinSeconds}`];
}

/** What is wrong with a result, in plain words. */
export function erasureViolations(scenario: ErasureScenario, result: ErasureResult): string[] {
  const { kills, asked, erased, receipts, unproven, uncounted, touched, unannounced, early } = result;
  const { state, total, done, notFound, waiting } = result.status;
  const words = lateness(scenario, result);
  if (state !== 'done' || done !== asked || total !== asked)
    words.push(
      `it is ${state}: of ${asked} users ${total} are noted, ${done} done, ${notFound} called already gone, ${waiting} waiting`,
    );
  if (erased < asked) words.push(`${asked - erased} users on the list are still there`);
  if (receipts !== asked) words.push(`${receipts} receipts for ${asked} users`);
  if (unproven > 0)
    words.push(`${unproven} users have no receipt, or not one, that says that they were erased`);
  if (uncounted > 0) words.push(`${uncounted} receipts know of fewer attempts than the service has seen`);
  if (touched > 0) words.push(`${touched} times somebody was touched who is not on the list`);
  if (unannounced > 0) words.push(`${unannounced} users were erased before they were logged out`);
  if (early > 0) words.push(`${early} requests came before the list was read to its end`);
  if (!scenario.isStormy && result.repeated > AT_ONCE * kills)
    words.push(
      `${result.repeated} requests were repeated, and ${kills} kills explain ${AT_ONCE * kills} at most`,
    );
  return words;
}
