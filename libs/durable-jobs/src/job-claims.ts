import { type DueJobs, positionIn } from './due-jobs.js';
import type { Rows } from './commit-batches.js';
import type { HeldJob } from './held-jobs.js';
import { groupOf, idOf, priorityOf, type FoundJob, type JobRecords } from './job-records.js';
import { LEASE_MS } from './job-kind.js';
import { isPromise, type MaybePromise } from './maybe-promise.js';
import type { StorageRow } from './storage.js';
import type { TimedStorage } from './timed-storage.js';

const MAX_BATCH = 256;
const MAX_ROUNDS = 32;
const MAX_WIDTH = 16;
const NARROWING = 0.9;

/** What a claim does with the due rows that it has found, in one commit. */
class ClaimPlan<T> {
  readonly claimed: HeldJob<T>[] = [];
  readonly unreadable: FoundJob<T>[] = [];
  readonly checks = new Map<string, string | undefined>();
  readonly changes = new Map<string, string | undefined>();
  /** Whether it has met jobs of a paused group. */
  hasPaused = false;

  set = (key: string, value: string | undefined): unknown => this.changes.set(key, value);
  check = (key: string, value: string | undefined): unknown => this.checks.set(key, value);

  /** Takes a row away, if it is still there. */
  take([key, value]: StorageRow): void {
    this.check(key, value);
    this.set(key, undefined);
  }
}

/**
 * Takes what is due: each batch is one commit, which moves the due rows to the end of the lease. The same commit removes due
 * rows of an earlier life of a job, parks what cannot be read, files aside the jobs of paused groups, and brings some of
 * those back whose group was resumed.
 */
export class JobClaims<T> {
  /** After a conflict a batch is chosen from so many times the rows, so that processes take different ones. */
  #width = 1;

  /** @param unreadableHint why a job is parked that cannot be read, and what to do about it */
  constructor(
    private readonly storage: TimedStorage,
    private readonly records: JobRecords<T>,
    private readonly due: DueJobs,
    private readonly unreadableHint: string,
  ) {}

  /** At most `limit`, the first ones first, and what was parked because it cannot be read. */
  async claim(limit: number, leaseMs = LEASE_MS): Promise<Pick<ClaimPlan<T>, 'claimed' | 'unreadable'>> {
    const most = Math.min(limit, MAX_BATCH);
    const unreadable: FoundJob<T>[] = [];
    let hasPaused = false;
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const wanted = hasPaused ? MAX_BATCH : Math.ceil(most * this.#width);
      const found = await this.due.first(wanted);
      if (found.length === 0) break;
      const start = Math.floor(Math.random() * (Math.max(0, found.length - most) + 1));
      const rows = hasPaused || this.#width === 1 ? found : found.slice(start, start + most);
      const plan = await this.#plan(rows, most, leaseMs);
      const isMade = await this.#commit(plan);
      this.#width = isMade ? Math.max(1, this.#width * NARROWING) : MAX_WIDTH;
      if (!isMade) continue;
      hasPaused = plan.hasPaused;
      unreadable.push(...plan.unreadable);
      if (plan.claimed.length > 0) return { claimed: plan.claimed, unreadable };
    }
    return { claimed: [], unreadable };
  }

  async #plan(rows: readonly StorageRow[], most: number, leaseMs: number): Promise<ClaimPlan<T>> {
    const plan = new ClaimPlan<T>();
    const ids = rows.map(([key]) => idOf(key));
    const groups = [...new Set(ids.flatMap((id) => groupOf(id) ?? []))];
    const keys = [
      ...ids.map((id) => this.records.key('pending', id)),
      ...groups.map((group) => this.records.key('paused', group)),
    ];
    const values = await this.storage.get(keys);
    const pauses = new Map(groups.map((group, n) => [group, values[ids.length + n]]));
    for (const [n, row] of rows.entries()) {
      const [due, born] = row;
      const id = idOf(due);
      const pause = pauses.get(groupOf(id) ?? '');
      const text = values[n];
      if (id.endsWith('/')) {
        await this.#bringBack(plan, row, id, pause);
        continue;
      }
      const found = text === undefined ? undefined : this.records.read('pending', id, text);
      // A row that was left behind: the job is finished, or its id has another.
      if (!found || (found.stored && found.stored.born !== born)) plan.take(row);
      else if (!found.job) this.#park(plan, row, found);
      else if (pause?.startsWith('paused')) {
        plan.hasPaused = true;
        plan.take(row);
        // Or nobody would bring it back, when the group has been resumed since.
        plan.check(this.records.key('paused', groupOf(id) ?? ''), pause);
        plan.set(this.records.key('aside', id), `${positionIn(due)} ${born}`);
      } else if (plan.claimed.length < most) {
        plan.take(row);
        const lease = this.due.keyIn(priorityOf(found.job.position), leaseMs, id);
        plan.set(lease, born);
        plan.claimed.push({ claim: found.job, text: found.text, due: lease, wasDue: due });
      }
    }
    return plan;
  }

  /** Some of the jobs of a group that was resumed are due again; the rest follows when the row of the resumption is met again. */
  async #bringBack(
    plan: ClaimPlan<T>,
    row: StorageRow,
    id: string,
    pause: string | undefined,
  ): Promise<void> {
    const [, resumption] = row;
    if (pause !== `resumed ${resumption}`) {
      plan.take(row); // the group was paused or resumed once more
      return;
    }
    const aside = await this.storage.range(...this.records.range('aside', id), { limit: MAX_BATCH });
    const paused = this.records.key('paused', id.slice(0, -1));
    plan.check(paused, pause);
    for (const [key, value] of aside) {
      const [position = '', born = ''] = value.split(' ');
      plan.take([key, value]);
      plan.set(this.due.key(position, idOf(key)), born);
    }
    if (aside.length === MAX_BATCH) return;
    plan.take(row);
    plan.set(paused, undefined);
  }

  #park(plan: ClaimPlan<T>, row: StorageRow, found: FoundJob<T>): void {
    const { id, text } = found;
    plan.take(row);
    plan.check(this.records.key('pending', id), text);
    const since = this.due.position(0);
    this.records.setParked(plan, {
      id,
      record: text,
      hint: this.unreadableHint,
      parkedAt: Date.now(),
      since,
    });
    plan.unreadable.push(found);
  }

  /** A commit that is made after its time limit is made in vain: its jobs are due again at once. */
  #commit({ checks, changes, claimed }: ClaimPlan<T>): MaybePromise<boolean> {
    if (changes.size === 0) return true;
    const giveBack = (): void => {
      const leases = claimed.map(({ due, claim: { born } }) => [due, born] as const);
      const free = claimed.flatMap(({ due, wasDue, claim: { born } }): Rows => [
        [due, undefined],
        [wasDue, born],
      ]);
      // If that fails, they are due when their leases end.
      const given = this.storage.commit(new Map(leases), new Map(free));
      if (isPromise(given)) given.catch(() => undefined);
    };
    return this.storage.commit(checks, changes, claimed.length > 0 ? giveBack : undefined);
  }
}
