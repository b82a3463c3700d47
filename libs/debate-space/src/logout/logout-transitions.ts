import { LEASE_MS } from '../jobs/job-queue.js';
import type { DeliveryProgress, LogoutEntry, LogoutJob } from '../logout/logout.js';
import { LogoutClaims, type OwnLogout } from './logout-claims.js';
import { STATES, type LogoutRecords, type Rows } from './logout-records.js';
import { dueAtOf, queueId, recordKey, userKey } from './queue-keys.js';
import { wait, type Steps } from './steps.js';
import { newLogout, progressOf } from './stored-logout.js';

/**
 * The logouts to deliver, on a storage. A logout is a record in the family of its state, and a row in `due`: its lease,
 * and the token that decides between processes. What this process holds or has claimed it changes without reading it.
 */
export class LogoutTransitions {
  readonly #records: LogoutRecords;
  readonly #claims: LogoutClaims;
  /** By the id of the entry. After a hold, a cancel or a finish of unknown outcome it stays, for the call that repeats it. */
  readonly #own = new Map<string, OwnLogout>();

  constructor(records: LogoutRecords, claims: LogoutClaims) {
    this.#records = records;
    this.#claims = claims;
  }

  *hold(entry: LogoutEntry, leaseMs: number): Steps<void> {
    const before = this.#own.get(entry.id);
    if (before?.state === 'pending') return;
    const own = before ?? this.#newHold(entry, leaseMs);
    this.#own.set(entry.id, own);
    const absent = STATES.map((state) => [recordKey(state, own.id), undefined] as const);
    const user = [userKey(own.stored.uidHash, own.id), ''] as const;
    const isMade = yield* wait(this.#records.commit(absent, [...heldRows(own), user]));
    if (!isMade && !before) this.#own.delete(entry.id); // it is in the queue, and not by this process
  }

  *extend(entryId: string, leaseMs: number): Steps<void> {
    yield* this.#renewed(this.#ownIn('held', entryId), leaseMs);
  }

  *renew(entryId: string, leaseMs: number): Steps<void> {
    yield* this.#renewed(this.#ownIn('pending', entryId), leaseMs);
  }

  /** Stores an entry as far as it has come; what it meets there is the same entry, of a hold of unknown outcome. */
  *takeOver(entry: LogoutEntry, progress: DeliveryProgress, hint?: string): Steps<void> {
    yield* this.hold(entry, LEASE_MS);
    const own = this.#ownIn('held', entry.id);
    if (!own) return;
    this.#own.delete(entry.id);
    const stored = { ...own.stored, ...progressOf(progress) };
    const rows =
      hint === undefined
        ? this.#records.pending(own.id, stored)
        : this.#records.parked(own.id, JSON.stringify(stored), hint);
    yield* this.#replace(own, rows);
  }

  *release(entryId: string): Steps<void> {
    const own = this.#ownIn('held', entryId);
    if (!own) return;
    this.#own.delete(entryId);
    if (yield* this.#replace(own, this.#records.pending(own.id, own.stored))) return;
    // An extension may have been made that seemed to have failed.
    yield* this.#records.replace(
      own.id,
      ['held'],
      ({ stored }) => stored && this.#records.pendingAgain(own.id, stored),
    );
  }

  *cancel(entryId: string): Steps<void> {
    const own = this.#ownIn('held', entryId);
    if (!own) return;
    const rows: Rows = [[userKey(own.stored.uidHash, own.id), undefined]];
    if (!(yield* this.#replace(own, rows))) yield* this.#records.replace(own.id, ['held'], () => rows);
    this.#own.delete(entryId);
  }

  *claim(limit: number, leaseMs: number): Steps<readonly LogoutJob[]> {
    const claimed = yield* this.#claims.claim(limit, leaseMs);
    for (const { entry, own } of claimed) this.#own.set(entry.id, own);
    return claimed.map(({ entry, own }) => ({ entry, ...progressOf(own.stored) }));
  }

  *retry(entryId: string, progress: DeliveryProgress, delayMs: number): Steps<void> {
    const own = this.#ownIn('pending', entryId);
    if (!own) return;
    this.#own.delete(entryId);
    const stored = { ...own.stored, ...progressOf(progress) };
    yield* this.#replace(own, this.#records.pending(own.id, stored, delayMs));
  }

  *finish(entryId: string, attempts: number): Steps<void> {
    const own = this.#own.get(entryId);
    const rows = own && this.#records.finished(own.id, own.stored, 'delivered', attempts);
    const isMade = own && rows && (yield* this.#replace(own, rows));
    const id = own?.id ?? queueId(entryId);
    // It is delivered, whether the lease was lost or it was parked meanwhile.
    if (!isMade)
      yield* this.#records.replace(
        id,
        STATES,
        ({ stored }) => stored && this.#records.finished(id, stored, 'delivered', attempts),
      );
    this.#own.delete(entryId);
  }

  *park(entryId: string, progress: DeliveryProgress, hint: string): Steps<void> {
    const own = this.#ownIn('pending', entryId);
    if (!own) return;
    this.#own.delete(entryId);
    const text = JSON.stringify({ ...own.stored, ...progressOf(progress) });
    yield* this.#replace(own, this.#records.parked(own.id, text, hint));
  }

  /** When the lease of a logout ends that this process holds or has claimed. */
  leaseEnd(entryId: string): number | undefined {
    const own = this.#own.get(entryId);
    return own && dueAtOf(own.due);
  }

  #newHold(entry: LogoutEntry, leaseMs: number): OwnLogout {
    const id = queueId(entry.id);
    const due = this.#records.due.keyIn(leaseMs, id);
    const stored = newLogout(entry, dueAtOf(due), this.#records.context);
    return { id, state: 'held', stored, text: JSON.stringify(stored), due };
  }

  /** Moves the due row to the end of a new lease; one of a lease that was lost stays where it is. */
  *#renewed(own: OwnLogout | undefined, leaseMs: number): Steps<void> {
    if (!own) return;
    const renewed = { ...own, due: this.#records.due.keyIn(leaseMs, own.id) };
    const turn = String(own.stored.turn);
    const rows: Rows = [[own.due, undefined], [renewed.due, turn]]; // prettier-ignore
    if (yield* wait(this.#records.commit([[own.due, turn]], rows))) this.#own.set(own.stored.id, renewed);
  }

  #ownIn(state: OwnLogout['state'], entryId: string): OwnLogout | undefined {
    const own = this.#own.get(entryId);
    return own?.state === state ? own : undefined;
  }

  /** Replaces the record and its due row, unless another process has changed either. */
  *#replace({ id, state, stored, text, due }: OwnLogout, rows: Rows): Steps<boolean> {
    const own: Rows = [[due, String(stored.turn)], [recordKey(state, id), text]]; // prettier-ignore
    const removed = own.map(([key]) => [key, undefined] as const);
    return yield* wait(this.#records.commit(own, [...removed, ...rows]));
  }
}

function heldRows({ id, stored, text, due }: OwnLogout): Rows {
  return [[recordKey('held', id), text], [due, String(stored.turn)]]; // prettier-ignore
}
