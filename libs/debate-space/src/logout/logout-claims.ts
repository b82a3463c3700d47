import type { StorageRow } from '../storage/storage.js';
import type { LogoutRecords, OwnLogout } from './logout-records.js';
import type { LogoutJob } from './logout.js';
import { idOf, recordKey } from './queue-keys.js';
import { UNREADABLE_HINT } from './stored-logout.js';

export interface ClaimedLogout {
  readonly job: LogoutJob;
  readonly own: OwnLogout;
}

const MAX_BATCH = 256;
const MAX_ROUNDS = 32;
const MAX_WIDTH = 16;
const NARROWING = 0.9;

/** Takes what is due: each batch is one commit, which moves the due rows to the end of the lease. */
export class LogoutClaims {
  /** After a conflict a batch is chosen from so many times the rows, so that processes take different ones. */
  #width = 1;

  constructor(private readonly records: LogoutRecords) {}

  /** At most `limit`, the earliest first. */
  async claim(limit: number, leaseMs: number): Promise<readonly ClaimedLogout[]> {
    const most = Math.min(limit, MAX_BATCH);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const rows = await this.records.due.first(Math.ceil(most * this.#width));
      if (rows.length === 0) return [];
      const spare = this.#width > 1 ? Math.max(0, rows.length - most) : 0;
      const start = Math.floor(Math.random() * (spare + 1));
      const claimed = await this.#take(rows.slice(start, start + most), leaseMs);
      this.#width = claimed ? Math.max(1, this.#width * NARROWING) : MAX_WIDTH;
      if (claimed && claimed.length > 0) return claimed;
    }
    return [];
  }

  /** @returns `undefined` when another process has taken one of them first */
  async #take(rows: readonly StorageRow[], leaseMs: number): Promise<readonly ClaimedLogout[] | undefined> {
    const found = await this.records.find(
      rows.map(([key]) => idOf(key)),
      ['pending', 'held'],
    );
    const byId = new Map(found.map((logout) => [logout.id, logout]));
    const checks = new Map<string, string | undefined>(rows);
    const changes = new Map<string, string | undefined>(rows.map(([key]) => [key, undefined]));
    const claimed: ClaimedLogout[] = [];
    for (const [row, turn] of rows) {
      const logout = byId.get(idOf(row));
      // A row that was left behind: the logout is finished, or has another.
      if (!logout || (logout.stored && String(logout.stored.turn) !== turn)) continue;
      const { id, state, text, stored, job } = logout;
      const isReadable = stored && job.entry.uid !== '';
      if (state === 'held' || !isReadable) {
        checks.set(recordKey(state, id), text);
        changes.set(recordKey(state, id), undefined);
      }
      if (isReadable) {
        const due = this.records.due.keyIn(leaseMs, id);
        changes.set(due, turn);
        if (state === 'held') changes.set(recordKey('pending', id), text);
        claimed.push({ job, own: { id, state: 'pending', stored, text, due } });
      } else for (const parked of this.records.parked(id, text, UNREADABLE_HINT)) changes.set(...parked);
    }
    return (await this.records.storage.commit(checks, changes)) ? claimed : undefined;
  }
}
