import type { LogoutContext, Outcome } from '../logout/logout.js';
import type { DebateSpaceStorage, StorageRow } from '../storage/storage.js';
import type { DueRows } from './due-rows.js';
import type { LogoutHistory } from './logout-history.js';
import { dueAtOf, idOf, recordKey, sinceKey, userKey, type LogoutState } from './queue-keys.js';
import { wait, type Steps } from './steps.js';
import {
  readLogout,
  readParked,
  type ParkedLogout,
  type ReadLogout,
  type StoredLogout,
} from './stored-logout.js';

type MaybePromise<T> = T | Promise<T>;

/** Keys and the values that they must have, or are to have; `undefined`: none. */
export type Rows = readonly (readonly [key: string, value: string | undefined])[];

export const STATES = ['pending', 'held', 'parked'] as const;
const PAGE = 1_000;

/** The records of the queue with their indexes. */
export class LogoutRecords {
  constructor(
    readonly storage: DebateSpaceStorage,
    readonly context: LogoutContext,
    readonly due: DueRows,
    readonly history: LogoutHistory,
  ) {}

  commit(checks: Rows, changes: Rows): MaybePromise<boolean> {
    return this.storage.commit(new Map(checks), new Map(changes));
  }

  /** @param text the record of a logout in that state */
  read(state: LogoutState, id: string, text: string): ReadLogout {
    return readLogout(id, state === 'parked' ? readParked(text).record : text, this.context);
  }

  pending(id: string, stored: StoredLogout, delayMs = 0): Rows {
    const due = delayMs > 0 ? this.due.keyIn(delayMs, id) : this.due.keyNow(id);
    const text = JSON.stringify({ ...stored, dueAt: dueAtOf(due) });
    return [[recordKey('pending', id), text], [due, String(stored.turn)]]; // prettier-ignore
  }

  /** Voids the due row that may be left. */
  pendingAgain(id: string, stored: StoredLogout): Rows {
    return this.pending(id, { ...stored, turn: stored.turn + 1 });
  }

  parked(id: string, record: string, hint: string): Rows {
    const since = sinceKey(this.due.micros(), id);
    const parked: ParkedLogout = { record, hint, parkedAt: Date.now(), since };
    return [[recordKey('parked', id), JSON.stringify(parked)], [since, '']]; // prettier-ignore
  }

  finished(id: string, stored: StoredLogout, outcome: Outcome, attempts: number): Rows {
    return [[userKey(stored.uidHash, id), undefined], ...this.history.rows(id, stored, outcome, attempts)];
  }

  /**
   * Replaces a record that is in one of these states, as it is found.
   * @param decide the rows to put in its place; `undefined`: leave it
   * @returns whether it was replaced
   */
  *replace(
    id: string,
    states: readonly LogoutState[],
    decide: (read: ReadLogout) => Rows | undefined,
  ): Steps<boolean> {
    // prettier-ignore
    for (;;) {
      const texts = yield* wait(this.storage.get(states.map((state) => recordKey(state, id))));
      const found = texts.findIndex((text) => text !== undefined);
      const [state, text] = [states[found], texts[found]];
      if (state === undefined || text === undefined) return false;
      const rows = decide(this.read(state, id, text));
      if (!rows) return false;
      const key = recordKey(state, id);
      const since = state === 'parked' ? readParked(text).since : '';
      const removed: Rows = [key, since].flatMap((name) => (name === '' ? [] : [[name, undefined]]));
      if (yield* wait(this.commit([[key, text]], [...removed, ...rows]))) return true;
    }
  }

  /** The ids at the end of all keys between two. */
  *ids(from: string, to: string): Steps<readonly string[]> {
    const rows: StorageRow[] = [];
    for (let start = from; ; start = `${rows.at(-1)?.[0] ?? from} `) {
      const page = yield* wait(this.storage.range(start, to, { limit: PAGE }));
      rows.push(...page);
      if (page.length < PAGE) return rows.map(([key]) => idOf(key));
    }
  }
}
