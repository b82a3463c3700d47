import type { LogoutEntry } from '../logout/logout.js';
import type { StorageRow } from '../storage/storage.js';
import type { LogoutRecords } from './logout-records.js';
import { idOf, recordKey } from './queue-keys.js';
import { wait, type Steps } from './steps.js';
import { UNREADABLE_HINT, type StoredLogout } from './stored-logout.js';

/** A logout that this process holds or has claimed: enough to change it without reading it again. */
export interface OwnLogout {
  readonly id: string;
  readonly state: 'held' | 'pending';
  readonly stored: StoredLogout;
  /** The record as the storage has it. */
  readonly text: string;
  /** The key of its due row: the lease, and the token of the next change. */
  readonly due: string;
}

export interface Claimed {
  readonly entry: LogoutEntry;
  readonly own: OwnLogout;
}

type Changes = Map<string, string | undefined>;

const MAX_BATCH = 256;
const MAX_ROUNDS = 32;
const MAX_WIDTH = 16;
const NARROWING = 0.9;

/** Takes what is due: each batch is one commit, which moves the due rows to the end of the lease. */
export class LogoutClaims {
  readonly #records: LogoutRecords;
  /** After a conflict a batch is chosen from so many times the rows, so that processes take different ones. */
  #width = 1;

  constructor(records: LogoutRecords) {
    this.#records = records;
  }

  /** At most `limit`, the earliest first. */
  *claim(limit: number, leaseMs: number): Steps<readonly Claimed[]> {
    const most = Math.min(limit, MAX_BATCH);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const rows = yield* this.#records.due.first(Math.ceil(most * this.#width));
      if (rows.length === 0) return [];
      const spare = this.#width > 1 ? Math.max(0, rows.length - most) : 0;
      const start = Math.floor(Math.random() * (spare + 1));
      const claimed = yield* this.#take(rows.slice(start, start + most), leaseMs);
      this.#width = claimed ? Math.max(1, this.#width * NARROWING) : MAX_WIDTH;
      if (claimed && claimed.length > 0) return claimed;
    }
    return [];
  }

  /** @returns `undefined` when another process has taken one of them first */
  *#take(rows: readonly StorageRow[], leaseMs: number): Steps<readonly Claimed[] | undefined> {
    const { storage, due } = this.#records;
    const ids = rows.map(([key]) => idOf(key));
    const keys = (['pending', 'held'] as const).flatMap((state) => ids.map((id) => recordKey(state, id)));
    const texts = yield* wait(storage.get(keys));
    const checks: Changes = new Map(rows);
    const changes: Changes = new Map(rows.map(([key]) => [key, undefined]));
    const claimed: Claimed[] = [];
    for (const [n, [, turn]] of rows.entries()) {
      const [id = '', pending, held] = [ids[n], texts[n], texts[n + ids.length]];
      const text = pending ?? held;
      if (text === undefined) continue; // its row was left behind: it is finished
      const { stored, entry } = this.#records.read('pending', id, text);
      if (stored && String(stored.turn) !== turn) continue; // its row was left behind: it has another
      const isOver = pending === undefined || !entry;
      if (isOver) {
        const record = recordKey(pending === undefined ? 'held' : 'pending', id);
        checks.set(record, text);
        changes.set(record, undefined);
      }
      if (!stored || !entry) {
        for (const row of this.#records.parked(id, text, UNREADABLE_HINT)) changes.set(...row);
        continue;
      }
      const own: OwnLogout = { id, state: 'pending', stored, text, due: due.keyIn(leaseMs, id) };
      changes.set(own.due, turn);
      if (isOver) changes.set(recordKey('pending', id), text);
      claimed.push({ entry, own });
    }
    return (yield* wait(storage.commit(checks, changes))) ? claimed : undefined;
  }
}
