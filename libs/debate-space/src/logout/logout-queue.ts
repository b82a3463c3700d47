import type { DeliveryProgress, OutboxEntry, OutboxJob } from '../outbox/outbox.js';
import { LogoutClaims, type OwnLogout } from './logout-claims.js';
import { STATES, type LogoutRecords, type Rows } from './logout-records.js';
import { dueAtOf, queueId, recordKey, userKey } from './queue-keys.js';
import { wait, type Steps } from './steps.js';
import { newLogout, progressOf } from './stored-logout.js';

/**
 * The logouts to deliver, on a storage. A logout is a record in the family of its state, and a row in `due`: its lease,
 * and the token that decides between processes. What this process holds or has claimed it changes without reading it.
 */
export class LogoutQueue {
  readonly #records: LogoutRecords;
  readonly #claims: LogoutClaims;
  /** By the id of the entry. After a hold, a cancel or a finish of unknown outcome it stays, for the call that repeats it. */
  readonly #own = new Map<string, OwnLogout>();

  constructor(records: LogoutRecords) {
    this.#records = records;
    this.#claims = new LogoutClaims(records);
  }

  *hold(entry: OutboxEntry, leaseMs: number): Steps<void> {
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
    const own = this.#ownIn('held', entryId);
    if (!own) return;
    const extended = { ...own, due: this.#records.due.keyIn(leaseMs, own.id) };
    if (yield* this.#replace(own, heldRows(extended))) this.#own.set(entryId, extended);
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

  *claim(limit: number, leaseMs: number): Steps<readonly OutboxJob[]> {
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
    const own = this.#ownIn('pending', entryId);
    const rows = own && this.#records.finished(own.id, own.stored, 'delivered', attempts);
    const isMade = own && rows && (yield* this.#replace(own, rows));
    const id = isMade ? undefined : (own?.id ?? (yield* this.#records.find(entryId)));
    // It is delivered, whether the lease was lost or it was parked meanwhile.
    if (id !== undefined)
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

  #newHold(entry: OutboxEntry, leaseMs: number): OwnLogout {
    const id = queueId(entry.id, entry.endedAt);
    const due = this.#records.due.keyIn(leaseMs, id);
    const stored = newLogout(entry, dueAtOf(due), this.#records.context);
    return { id, state: 'held', stored, text: JSON.stringify(stored), due };
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
