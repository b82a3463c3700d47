import { DueJobs, positionIn } from './due-jobs.js';
import { HeldJobs } from './held-jobs.js';
import {
  idOf,
  JobRecords,
  momentOf,
  STATES,
  type FoundJob,
  type Job,
  type JobCodec,
  type JobState,
} from './job-records.js';
import { KeyedMutex } from './keyed-mutex.js';
import { rangePages, type Storage, type StorageView } from './storage.js';
import { TimedStorage } from './timed-storage.js';
import type { Transaction } from './transaction.js';

/** What distinguishes one store of jobs from another in the same storage. */
export interface JobStoreOptions<T> {
  /** `[a-z]` only. {@link jobFamilies} has the families of keys that the storage must be opened with. */
  readonly name: string;
  /** How the value of a job becomes data, and back. */
  readonly codec: JobCodec<T>;
  /** Begins all keys: with it stores of the same name share their families. @defaultValue none */
  readonly prefix?: string;
  /** How many priorities there are. @defaultValue 1 */
  readonly priorities?: number;
  /** Why a job is parked that cannot be read, and what to do about it. */
  readonly unreadableHint: string;
  /** Called after a job was parked because it cannot be read; must not throw. */
  readonly onUnreadable?: (found: FoundJob<T>) => void;
}

/** Which of the jobs to list. */
export interface ListOptions {
  /** How many jobs to return at most. */
  readonly limit: number;
  /** How many to leave out first. */
  readonly skip?: number;
  /** Only the jobs of this group. */
  readonly group?: string;
}

/** What can be seen of the jobs of one kind in a storage, or in its view in a transaction of the host's. */
export abstract class JobReader<T> {
  protected readonly storage: TimedStorage;
  protected readonly records: JobRecords<T>;
  protected readonly due: DueJobs;
  protected readonly held: HeldJobs<T>;
  /** Keeps the order of the calls about one job. */
  protected readonly mutex = new KeyedMutex();

  constructor(storage: Storage, { name, codec, prefix, priorities = 1 }: JobStoreOptions<T>) {
    this.storage = new TimedStorage(storage);
    this.records = new JobRecords(name, codec, prefix);
    this.due = new DueJobs(this.storage, this.records, priorities);
    this.held = new HeldJobs(this.storage, this.records, this.mutex);
  }

  /** Whether this process holds the claim: nobody has removed the job, and as far as known no other process has it. */
  isHeld(claim: Job<T>): boolean {
    return this.held.of(claim) !== undefined;
  }

  /**
   * When a pending job is due; while this process has claimed it, when its lease ends. By the clock of the storage, in
   * milliseconds.
   */
  dueAtOf({ id, position }: Pick<Job<T>, 'id' | 'position'>): number {
    const held = this.held.get(id);
    return momentOf(held ? positionIn(held.due) : position);
  }

  /** What this process holds of a job. */
  claimOf(id: string): Job<T> | undefined {
    return this.held.get(id)?.claim;
  }

  /** The jobs of these keys, the earliest of each first. */
  async find(keys: readonly string[], view: StorageView = this.storage): Promise<readonly FoundJob<T>[]> {
    const ids: string[] = [];
    for (const key of keys)
      for await (const rows of rangePages(view, ...this.records.range('key', `${key}:`)))
        ids.push(...rows.map(([row]) => idOf(row)));
    return this.#read(ids, view);
  }

  /** Pending jobs in the order of their ids; parked ones in the order in which they were parked, in a group that of ids. */
  async list(
    state: JobState,
    { limit, skip = 0, group }: ListOptions,
    view: StorageView = this.storage,
  ): Promise<readonly FoundJob<T>[]> {
    const isBySince = state === 'parked' && group === undefined;
    const start = group === undefined ? '' : `${group}/`;
    const range = this.records.range(isBySince ? 'since' : state, start);
    const rows = (await view.range(...range, { limit: skip + limit })).slice(skip);
    const found = await this.#read(
      rows.map(([key]) => idOf(key)),
      view,
    );
    return found.filter((job) => job.state === state);
  }

  /** How many of a state a group has. Reads them all. */
  async countIn(group: string, state: JobState, view: StorageView = this.storage): Promise<number> {
    let count = 0;
    for await (const rows of rangePages(view, ...this.records.range(state, `${group}/`)))
      count += rows.length;
    return count;
  }

  /** How many there are of each state; may be a second old. Stores of the same name are counted together. */
  async counts(): Promise<Readonly<Record<JobState, number>>> {
    const counts = STATES.map(async (state) => this.storage.count(this.records.family(state)));
    const [pending = 0, parked = 0] = await Promise.all(counts);
    return { pending, parked };
  }

  /** The jobs of these ids, in any state. */
  async findIn(
    transaction: Transaction,
    ids: readonly string[],
  ): Promise<readonly (FoundJob<T> | undefined)[]> {
    const texts = await transaction.getAll(this.recordKeys(ids));
    return ids.map((id, n) => this.#readAt(id, texts, n)[0]);
  }

  /** Nothing else says which rows lead to a job whose record is damaged. */
  protected async removeRowsOf(transaction: Transaction, family: 'key' | 'since', id: string): Promise<void> {
    for await (const rows of rangePages(this.storage, ...this.records.range(family)))
      for (const [row] of rows) if (idOf(row) === id) transaction.set(row, undefined);
  }

  async #read(ids: readonly string[], view: StorageView): Promise<readonly FoundJob<T>[]> {
    if (ids.length === 0) return [];
    const texts = await view.get(this.recordKeys(ids));
    return ids.flatMap((id, n) => this.#readAt(id, texts, n));
  }

  /** @param texts the records of several jobs, of each one in each state @param n which of them it is */
  #readAt(id: string, texts: readonly (string | undefined)[], n: number): readonly FoundJob<T>[] {
    return STATES.flatMap((state, m) => {
      const text = texts[n * STATES.length + m];
      return text === undefined ? [] : [this.records.read(state, id, text)];
    });
  }

  /** The keys of the records of these jobs, in any state: to read them with others in one round trip. */
  recordKeys(ids: readonly string[]): readonly string[] {
    return ids.flatMap((id) => STATES.map((state) => this.records.key(state, id)));
  }
}
