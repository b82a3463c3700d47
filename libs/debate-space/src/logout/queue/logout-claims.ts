import type { StorageRow } from 'durable-jobs';
import type { LogoutRecords, OwnLogout } from './logout-records.js';
import type { LogoutJob } from '../logout.js';
import { dueAtOf, idOf, recordKey } from './queue-keys.js';
import { UNREADABLE_HINT } from './stored-logout.js';

export interface ClaimedLogout {
  readonly job: LogoutJob;
  readonly own: OwnLogout;
}

const MAX_BATCH = 256;
const MAX_ROUNDS = 32;
const MAX_WIDTH = 16;
const NARROWING = 0.9;
/** For this time a process that makes logouts due itself leaves those of the others to them, when they compete. */
const YOUNG_MS = 1_000;
/** For this time after a conflict others count as competing. */
const COMPETING_MS = 10_000;

/**
 * Takes what is due: each batch is one commit, which moves the due rows to the end of the lease. Processes that wanted the
 * same rows would be in each other's way: of two, one would have worked in vain.
 */
export class LogoutClaims {
  /** What this process has made due within {@link YOUNG_MS}, and when; the earliest first. */
  readonly #own = new Map<string, number>();
  #lastConflictAt = -Infinity;
  /** After a conflict a batch is chosen from so many times the rows, so that processes take different ones. */
  #width = 1;

  constructor(private readonly records: LogoutRecords) {}

  /** This process has made a logout due, and takes it earlier than others do. */
  noteOwn(id: string): void {
    this.#own.delete(id);
    this.#own.set(id, performance.now());
    this.#forgetOld();
  }

  /** At most `limit`, the earliest first. */
  async claim(limit: number, leaseMs: number): Promise<readonly ClaimedLogout[]> {
    const most = Math.min(limit, MAX_BATCH);
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const wanted = Math.ceil(most * this.#width);
      const found = await this.records.due.first(wanted);
      const rows = this.#forThisProcess(found);
      if (rows.length === 0 && (found.length < wanted || this.#width === MAX_WIDTH)) return [];
      const spare = this.#width > 1 ? Math.max(0, rows.length - most) : 0;
      const start = Math.floor(Math.random() * (spare + 1));
      const claimed =
        rows.length > 0 ? await this.#take(rows.slice(start, start + most), leaseMs) : undefined;
      this.#width = claimed ? Math.max(1, this.#width * NARROWING) : MAX_WIDTH;
      if (claimed && claimed.length > 0) return claimed;
    }
    return [];
  }

  /** Without what other processes have made due a moment ago, or all when nothing else is due and they do not compete. */
  #forThisProcess(rows: readonly StorageRow[]): readonly StorageRow[] {
    this.#forgetOld();
    if (this.#own.size === 0) return rows;
    const young = this.records.storage.now() - YOUNG_MS;
    const first = rows.filter(([key]) => dueAtOf(key) < young || this.#own.has(idOf(key)));
    const isCompeting = performance.now() - this.#lastConflictAt < COMPETING_MS;
    return first.length > 0 || isCompeting ? first : rows;
  }

  #forgetOld(): void {
    const now = performance.now();
    for (const [id, at] of this.#own) {
      if (now - at < YOUNG_MS) return;
      this.#own.delete(id);
    }
  }

  /** @returns `undefined` when another process has taken one of them first */
  async #take(rows: readonly StorageRow[], leaseMs: number): Promise<readonly ClaimedLogout[] | undefined> {
    const found = await this.records.find(
      rows.map(([key]) => idOf(key)),
      ['pending'],
    );
    const byId = new Map(found.map((logout) => [logout.id, logout]));
    const checks = new Map<string, string | undefined>(rows);
    const changes = new Map<string, string | undefined>(rows.map(([key]) => [key, undefined]));
    const claimed: ClaimedLogout[] = [];
    const unreadable: LogoutJob[] = [];
    for (const [row, turn] of rows) {
      const logout = byId.get(idOf(row));
      // A row that was left behind: the logout is finished, or has another.
      if (!logout || (logout.stored && String(logout.stored.turn) !== turn)) continue;
      const { id, text, stored, job } = logout;
      if (stored && job.entry.uid !== '') {
        const due = this.records.due.keyIn(leaseMs, id);
        changes.set(due, turn);
        claimed.push({ job, own: { id, state: 'pending', stored, text, due } });
      } else {
        checks.set(recordKey('pending', id), text);
        changes.set(recordKey('pending', id), undefined);
        for (const parked of this.records.parked(id, text, UNREADABLE_HINT)) changes.set(...parked);
        unreadable.push(job);
      }
    }
    if (!(await this.records.storage.commit(checks, changes))) {
      this.#lastConflictAt = performance.now();
      return undefined;
    }
    for (const job of unreadable) this.#reportUnreadable(job);
    return claimed;
  }

  #reportUnreadable({ entry: { id, uid }, attempts }: LogoutJob): void {
    const about = { id, uid, attempts, tookMs: 0, cause: 'unreadable', hint: UNREADABLE_HINT };
    this.records.context.emit?.({ type: 'logout-parked', ...about });
  }
}
