import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { ErasingTrial } from './erasing-trial.js';
import { lateness, unannounced, type Lateness, type ReceiptsOfUsers } from './erasure-account.js';
import type { Host } from './host.js';
import type { TrialSettings } from './trial.js';

const LEAVING = '^listed-';
/** Longer than the runner of an app takes to find what others have added: a user who is touched by mistake is touched by then. */
const NOTICED_WITHIN_MS = 5_000;

const transactionColumns = {
  scenario: 'scenario',
  kills: 'kills',
  committed: 'committed',
  rolledBack: 'rolled back',
  requested: 'erasures',
  erased: 'erased',
  unproven: 'unproven',
  touched: 'touched',
  unannounced: 'unannounced',
  open: 'open',
  settledSeconds: 'settled s',
  seconds: 'seconds',
};

type TransactionResult = Lateness &
  Readonly<Record<Exclude<keyof typeof transactionColumns, 'scenario'> | 'asked', number>> & {
    readonly scenario: string;
  };

/** How many erasures the plugin has, and how many of them are not done. */
export interface ErasureCounts {
  readonly requested: number;
  readonly open: number;
}

export type TransactionAccount = ErasureCounts & { readonly ofUser: ReceiptsOfUsers };

/** A host deletes members and requests their erasures in the same transactions. What its table says then is the truth. */
export class TransactionTrial extends ErasingTrial<TransactionAccount, TransactionResult> {
  readonly columns = transactionColumns;
  /** As many stay as leave. */
  protected override readonly othersShare = 1;
  /** Who is left of them in the end. */
  #left: ReadonlySet<string> = new Set();
  #database = '';
  #members!: pg.Pool;

  protected newHost(settings: TrialSettings): Host {
    this.#database = settings.place;
    const erasure = { mode: this.scenario.mode, leaving: LEAVING };
    return this.hostOf({ ...settings, program: 'transaction-app.js', erasure });
  }

  protected async prepare(uids: readonly string[]): Promise<void> {
    this.#members = new pg.Pool({ connectionString: this.#database });
    await this.#members.query('CREATE TABLE member (uid text PRIMARY KEY)');
    await this.#members.query('INSERT INTO member SELECT unnest($1::text[])', [uids]);
  }

  protected async isDone(): Promise<boolean> {
    const { rows } = await this.#members.query('SELECT uid FROM member WHERE uid ~ $1', [LEAVING]);
    if (rows.length > 0) return false;
    const counts = (await this.firstHost.ask({})) as ErasureCounts | undefined;
    return counts?.open === 0;
  }

  protected override async settled(): Promise<TransactionAccount | undefined> {
    await sleep(NOTICED_WITHIN_MS);
    const { rows } = await this.#members.query<{ uid: string }>('SELECT uid FROM member');
    this.#left = new Set(rows.map(({ uid }) => uid));
    await this.#members.end();
    return super.settled();
  }

  protected result(account: TransactionAccount | undefined): TransactionResult {
    if (account === undefined) throw new Error('the app does not answer');
    const { scenario, service, listed, others, kills, settledSeconds, seconds } = this;
    const members = this.#left;
    const committed = listed.filter((uid) => !members.has(uid));
    const isErased = (uid: string): boolean => !service.users.has(uid);
    const isProven = (uid: string): boolean =>
      (account.ofUser[uid] ?? []).map(({ outcome }) => outcome).join() === 'erased';
    const named = service.received.all.filter(({ uid = '' }) => members.has(uid));
    return {
      scenario: scenario.name,
      kills,
      committed: committed.length,
      rolledBack: this.count('rolled-back'),
      requested: account.requested,
      erased: committed.filter(isErased).length,
      unproven: committed.filter((uid) => !isProven(uid)).length,
      touched: [...members, ...others].filter(isErased).length + named.length,
      unannounced: unannounced(service.received.all, scenario.mode),
      open: account.open,
      settledSeconds,
      seconds,
      asked: listed.length,
    };
  }

  protected violations(result: TransactionResult): string[] {
    const { asked, committed, rolledBack, requested, erased, unproven, touched, open } = result;
    const words = lateness(this.scenario, result);
    if (committed < asked) words.push(`${asked - committed} members who leave are still there`);
    if (rolledBack < asked / 2) words.push(`only ${rolledBack} transactions were rolled back`);
    if (requested !== committed) words.push(`${requested} erasures were requested for ${committed} commits`);
    if (erased < committed) words.push(`${committed - erased} members were deleted and not erased`);
    if (unproven > 0) words.push(`${unproven} have no receipt, or not one, that says that they were erased`);
    if (touched > 0) words.push(`${touched} times somebody was touched whose deletion was rolled back`);
    if (result.unannounced > 0)
      words.push(`${result.unannounced} users were erased before they were logged out`);
    if (open > 0) words.push(`${open} erasures are not done`);
    return words;
  }
}
