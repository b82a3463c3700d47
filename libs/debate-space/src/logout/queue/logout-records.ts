import { CommitBatches, rangePages, recordText, type Rows, type Storage } from 'durable-jobs';
import type { MaybePromise } from '../../async/maybe-promise.js';
import { DueRows } from './due-rows.js';
import { inTime } from './pending-writes.js';
import { LogoutHistory } from './logout-history.js';
import type { LogoutContext, Outcome } from '../logout.js';
import { dueAtOf, idOf, queueId, recordKey, sinceKey, userKey, type LogoutState } from './queue-keys.js';
import { LOGOUT, PARKED, readLogout, type ReadLogout, type StoredLogout } from './stored-logout.js';

/** A record as the storage has it. */
export interface LogoutRecord {
  /** The id in the queue. */
  readonly id: string;
  readonly state: LogoutState;
  readonly text: string;
}
export interface FoundLogout extends LogoutRecord, ReadLogout {}

/** A logout that this process has claimed: enough to change it without reading it again. */
export interface OwnLogout extends LogoutRecord {
  readonly state: 'pending';
  readonly stored: StoredLogout;
  /** The key of its due row. */
  readonly due: string;
}

export const STATES = ['pending', 'parked'] as const;

/** The records of the queue with their indexes. */
export class LogoutRecords {
  readonly due: DueRows;
  readonly history: LogoutHistory;
  readonly #batches: CommitBatches;

  /** @param maxHistory how many finished logouts are kept at most */
  constructor(
    readonly storage: Storage,
    readonly context: LogoutContext,
    maxHistory: number,
  ) {
    this.due = new DueRows(storage);
    this.history = new LogoutHistory(storage, context, maxHistory);
    this.#batches = new CommitBatches({
      commit: (checks, changes) => inTime(storage.commit(checks, changes)),
    });
  }

  /** One that gets no answer must not hold up what follows about the same logout: it rejects in time. */
  commit(checks: Rows, changes: Rows): MaybePromise<boolean> {
    return inTime(this.storage.commit(new Map(checks), new Map(changes)));
  }

  /** Those of these logouts that are in one of the states. */
  async find(ids: readonly string[], states: readonly LogoutState[]): Promise<readonly FoundLogout[]> {
    const places = ids.flatMap((id) => states.map((state) => ({ id, state })));
    const texts = await this.storage.get(places.map(({ id, state }) => recordKey(state, id)));
    return places.flatMap(({ id, state }, n) => {
      const text = texts[n];
      return text === undefined ? [] : [{ id, state, text, ...readLogout(state, id, text, this.context) }];
    });
  }

  /** The ids at the end of all keys between two. */
  async ids(from: string, to: string): Promise<readonly string[]> {
    const ids: string[] = [];
    for await (const rows of rangePages(this.storage, from, to)) ids.push(...rows.map(([key]) => idOf(key)));
    return ids;
  }

  /** The rows of a logout that is due after the delay. */
  pending(stored: StoredLogout, delayMs = 0): Rows {
    const id = queueId(stored.id);
    const due = this.due.keyIn(delayMs, id);
    const text = recordText(LOGOUT, { ...stored, dueAt: dueAtOf(due) });
    return rowsOf({ id, state: 'pending', stored, text, due });
  }

  /** The rows of a logout that is delivered no more. */
  parked(id: string, record: string, hint: string): Rows {
    const since = sinceKey(this.due.micros(), id);
    const text = recordText(PARKED, { record, hint, parkedAt: Date.now(), since });
    const order = [since, ''] as const;
    return [order, [recordKey('parked', id), text]];
  }

  /** The rows of a logout that has come to its end. */
  finished(stored: StoredLogout, outcome: Outcome, attempts = stored.attempts): Rows {
    const user = userKey(stored.uidHash, queueId(stored.id));
    return [[user, undefined], ...this.history.rows(stored, outcome, attempts)];
  }

  /**
   * Puts rows in the place of a claimed record and its due row; those that come to their end together are one commit.
   * @returns `false` when another process has changed either
   */
  replaceClaimed(own: OwnLogout, rows: Rows): Promise<boolean> {
    const before = rowsOf(own);
    return Promise.resolve(this.#batches.commit(new Map(before), new Map([...without(before), ...rows])));
  }

  /**
   * Puts rows in the place of a record that is in one of these states, as it is found. Its due row is left behind.
   * @param decide the rows; `undefined`: leave it
   * @returns whether it was replaced
   */
  async replaceFound(
    id: string,
    states: readonly LogoutState[],
    decide: (found: FoundLogout) => Rows | undefined,
  ): Promise<boolean> {
    for (;;) {
      const [found] = await this.find([id], states);
      const rows = found && decide(found);
      if (!rows) return false;
      const before: Rows = [[recordKey(found.state, id), found.text]];
      const since: Rows = found.parked?.since ? [[found.parked.since, '']] : [];
      if (await this.commit(before, [...without([...before, ...since]), ...rows])) return true;
    }
  }
}

/** What the storage has of such a logout: its lease, which is the token of the next change, and its record. */
export function rowsOf({ id, state, stored, text, due }: OwnLogout): Rows {
  const lease = [due, String(stored.turn)] as const;
  return [lease, [recordKey(state, id), text]];
}

const without = (rows: Rows): Rows => rows.map(([key]) => [key, undefined]);
