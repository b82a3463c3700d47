import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { lateness, unannounced } from './erasure-account.mjs';
import { ErasureTrial } from './erasure-trial.mjs';

const LEAVING = '^listed-';
/** Longer than the runner of an app takes to find what others have added: a user who is touched by mistake is touched by then. */
const NOTICED_WITHIN_MS = 5_000;

/** A host deletes members and requests their erasures in the same transactions. What its table says then is the truth. */
export class TransactionTrial extends ErasureTrial {
  columns = {
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
  /** As many stay as leave. */
  othersShare = 1;
  #members;

  host(settings) {
    const erasure = { mode: this.scenario.mode, leaving: LEAVING };
    return super.host(settings, { program: 'transaction-app.mjs', erasure });
  }

  /** @param uids of all members of the host */
  async prepare(uids) {
    this.#members = new pg.Pool({ connectionString: this.server.url });
    await this.#members.query('CREATE TABLE member (uid text PRIMARY KEY)');
    await this.#members.query('INSERT INTO member SELECT unnest($1::text[])', [uids]);
  }

  async isDone() {
    const { rows } = await this.#members.query('SELECT uid FROM member WHERE uid ~ $1', [LEAVING]);
    return rows.length === 0 && (await this.hosts[0].ask({}))?.open === 0;
  }

  async settled() {
    await sleep(NOTICED_WITHIN_MS);
    const { rows } = await this.#members.query('SELECT uid FROM member');
    this.members = new Set(rows.map(({ uid }) => uid));
    await this.#members.end();
    return super.settled();
  }

  result(account) {
    if (account === undefined) throw new Error('the app does not answer');
    const { scenario, service, listed, others, members, kills, settledSeconds, seconds } = this;
    const committed = listed.filter((uid) => !members.has(uid));
    const isErased = (uid) => !service.users.has(uid);
    const isProven = (uid) => account.ofUser[uid].map(({ outcome }) => outcome).join() === 'erased';
    const named = service.received.all.filter(({ uid }) => members.has(uid));
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

  violations(result) {
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
