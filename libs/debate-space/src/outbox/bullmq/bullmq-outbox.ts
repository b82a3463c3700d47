import type { Redis, RedisOptions } from 'ioredis';
import { finishedEntry } from '../finished-entries.js';
import type {
  DeliveryProgress,
  FinishedEntry,
  Outbox,
  OutboxContext,
  OutboxCounts,
  OutboxEntry,
  OutboxJob,
  Outcome,
  ParkedJob,
  UserHistory,
  WaitingJob,
} from '../outbox.js';
import { openEntry, sealEntry, UNREADABLE_CURE } from '../sealed-entry.js';
import { FRESH } from './job-data.js';
import { LogoutJobs, TICK_MS, type LogoutJob } from './logout-jobs.js';
import { OutboxIndex, type Glance, type JobState } from './outbox-index.js';
import { RedisLink } from './redis-link.js';
import { RedisRecords } from './redis-records.js';
import { redisWarnings } from './redis-warnings.js';

interface Found extends JobState {
  readonly id: string;
  readonly job: LogoutJob;
}

/** An outbox that all instances of an app share. See {@link LogoutJobs} for the jobs and `outbox-scripts.ts` for the rest. */
export class BullmqOutbox implements Outbox {
  readonly engine = 'BullMQ on Redis';
  readonly promise =
    'logouts are kept in Redis: a crash of this app loses none, and any other instance delivers them; a crash of Redis itself loses the last second at most when its append-only file is on';
  readonly durable = true;
  readonly warnings: readonly string[];
  readonly records: RedisRecords;
  readonly #link: RedisLink;
  readonly #jobs: LogoutJobs;
  readonly #index: OutboxIndex;
  readonly #context: OutboxContext;
  readonly #timer: NodeJS.Timeout;
  #changed: () => void = () => undefined;

  private constructor(
    link: RedisLink,
    jobs: LogoutJobs,
    index: OutboxIndex,
    records: RedisRecords,
    context: OutboxContext,
    warnings: readonly string[],
  ) {
    this.#link = link;
    this.records = records;
    this.#jobs = jobs;
    this.#index = index;
    this.#context = context;
    this.warnings = warnings;
    const lookAround = (): void => {
      this.#lookAround();
    };
    this.#timer = setInterval(context.contained, TICK_MS, lookAround).unref();
  }

  /** @throws {OutboxError} when Redis does not answer or a package is missing */
  static async open(
    connection: string | RedisOptions | Redis,
    prefix: string,
    context: OutboxContext,
  ): Promise<BullmqOutbox> {
    const link = await RedisLink.open(connection);
    try {
      const jobs = await LogoutJobs.open(link.client, prefix, context.namespace);
      const index = new OutboxIndex(link.client, jobs, prefix, context.namespace);
      const records = new RedisRecords(link, prefix, context.namespace);
      return new BullmqOutbox(link, jobs, index, records, context, await link.run(redisWarnings));
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  async hold(entry: OutboxEntry, leaseMs: number): Promise<void> {
    const id = this.#jobs.idOf(entry.id);
    await this.#change(async () => {
      const uidHash = this.#context.uidHash(entry.uid);
      const isNew = await this.#index.hold(id, entry.endedAt, uidHash);
      if (isNew) await this.#jobs.add(id, sealEntry(entry, this.#context), uidHash, Math.ceil(leaseMs));
    });
  }

  async extend(entryId: string, leaseMs: number): Promise<void> {
    await this.#link.run(async () => {
      const found = await this.#find(this.#jobs.idOf(entryId), 'held');
      if (found) await this.#jobs.delay(found.id, Math.ceil(leaseMs));
    });
  }

  async release(entryId: string): Promise<void> {
    const id = this.#jobs.idOf(entryId);
    await this.#change(async () => {
      if (await this.#index.release(id)) await this.#jobs.promote(id);
    });
  }

  async cancel(entryId: string): Promise<void> {
    await this.#link.run(async () => {
      const found = await this.#find(this.#jobs.idOf(entryId), 'held');
      if (found && (await this.#end(found, 'held'))) await this.#jobs.remove(found.id);
    });
  }

  async claim(limit: number, leaseMs: number): Promise<readonly OutboxJob[]> {
    return this.#link.run(async () => {
      if (await this.#index.isPaused()) return [];
      const next = await Promise.all(Array.from({ length: limit }, async () => this.#jobs.next()));
      const leases = next.map(async (job): Promise<readonly OutboxJob[]> => {
        if (!job) return [];
        const { progress } = job.data;
        const entry = openEntry(job.data.entry, this.#context);
        const [isThere, isOurs] = await Promise.all([
          this.#index.pend(job.id, entry.endedAt),
          this.#jobs.postpone(job.id, Math.ceil(leaseMs)),
        ]);
        if (!isThere || !isOurs) return [];
        if (entry.uid !== '') return [{ entry, ...progress }];
        await this.#park(job.id, progress, UNREADABLE_CURE); // for the lease nobody else has it
        return [];
      });
      return (await Promise.all(leases)).flat();
    });
  }

  async retry(entryId: string, progress: DeliveryProgress, delayMs: number): Promise<void> {
    await this.#change(async () => {
      const found = await this.#find(this.#jobs.idOf(entryId), 'pending');
      if (!found) return;
      const { id, job } = found;
      await Promise.all([
        this.#jobs.update(job, { ...job.data, progress }),
        this.#jobs.delay(id, Math.ceil(delayMs)),
      ]);
    });
  }

  async finish(entryId: string, attempts: number): Promise<void> {
    const id = this.#jobs.idOf(entryId);
    await this.#link.run(async () => {
      const job = await this.#jobs.get(id);
      if (job) await Promise.all([this.#end({ id, job }, '', 'delivered', attempts), this.#jobs.remove(id)]);
    });
  }

  async park(entryId: string, progress: DeliveryProgress, cure: string): Promise<void> {
    await this.#link.run(() => this.#park(this.#jobs.idOf(entryId), progress, cure));
  }

  async pause(ms: number): Promise<void> {
    await this.#link.run(() => this.#index.pause(ms));
  }

  async counts(): Promise<OutboxCounts> {
    return (await this.#glance()).counts;
  }

  async oldestPending(): Promise<number | undefined> {
    return (await this.#glance()).oldest;
  }

  async nextDueMs(): Promise<number | undefined> {
    const { dueAt, pausedMs } = await this.#glance();
    return dueAt === undefined ? undefined : Math.max(0, dueAt - Date.now(), pausedMs);
  }

  onChange(listener: () => void): void {
    this.#changed = listener;
  }

  async parked(limit: number, skip = 0): Promise<readonly ParkedJob[]> {
    return this.#link.run(async () => {
      const jobs = await Promise.all((await this.#index.parked(limit, skip)).map((id) => this.#jobs.get(id)));
      return jobs.flatMap((job) => {
        if (!job) return [];
        const {
          entry,
          progress,
          parked = { cure: job.failedReason, parkedAt: job.finishedOn ?? 0 },
        } = job.data;
        return [{ entry: openEntry(entry, this.#context), ...progress, ...parked }];
      });
    });
  }

  async replay(entryId: string): Promise<boolean> {
    return this.#change(async () => {
      const found = await this.#find(this.#jobs.idOf(entryId), 'parked');
      if (!found) return false;
      const { id, job } = found;
      const { entry, uidHash } = job.data;
      if (openEntry(entry, this.#context).uid === '') return false;
      await this.#jobs.update(job, { entry, uidHash, progress: FRESH });
      return (await this.#jobs.again(job)) && this.#index.pend(id, entry.endedAt);
    });
  }

  async discard(entryId: string): Promise<boolean> {
    return this.#link.run(async () => {
      const found = await this.#find(this.#jobs.idOf(entryId), 'parked');
      if (!found) return false;
      await this.#jobs.remove(found.id); // first: the uid goes, whatever happens next
      return this.#end(found, 'parked', 'discarded', found.job.data.progress.attempts);
    });
  }

  async ofUser(uid: string): Promise<UserHistory> {
    const uidHash = this.#context.uidHash(uid);
    return this.#link.run(async () => {
      const [found, finished] = await Promise.all([
        this.#findAll(await this.#index.ofUser(uidHash)),
        this.#index.finishedOf(uidHash, Date.now() - this.#context.keepFinishedMs),
      ]);
      const waiting = found.map(({ job, state = 'pending', dueAt = Date.now() }): WaitingJob => {
        const { progress, parked } = job.data;
        const entry = openEntry(job.data.entry, this.#context);
        return { entry, ...progress, state, ...(state === 'parked' ? { cure: parked?.cure } : { dueAt }) };
      });
      return { waiting, finished };
    });
  }

  async supersede(uid: string, endedUntil: number): Promise<number> {
    return this.#link.run(async () => {
      const found = await this.#findAll(await this.#index.ofUser(this.#context.uidHash(uid)));
      let superseded = 0;
      for (const one of found) {
        const { entry, progress } = one.job.data;
        if (one.state !== 'pending' || entry.endedAt > endedUntil) continue;
        if (!(await this.#end(one, 'pending', 'superseded', progress.attempts))) continue;
        await this.#jobs.remove(one.id);
        superseded += 1;
      }
      return superseded;
    });
  }

  async admit(requests: number, perMs: number): Promise<number> {
    return this.#link.run(() => this.#index.admit(requests, perMs));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#changed = () => undefined;
    await this.#jobs.close();
    await this.#link.close();
  }

  async #change<T>(work: () => Promise<T>): Promise<T> {
    const result = await this.#link.run(work);
    this.#changed();
    return result;
  }

  async #park(id: string, progress: DeliveryProgress, cure: string): Promise<void> {
    const found = await this.#find(id, 'pending');
    if (!found || !(await this.#index.park(id))) return;
    const { job } = found;
    const parked = { cure, parkedAt: Date.now() };
    await Promise.all([
      this.#jobs.update(job, { ...job.data, progress, parked }),
      this.#jobs.fail(job, cure),
    ]);
  }

  /** For what other instances left or did: only this one's own changes are known at once. */
  #lookAround(): void {
    this.#link
      .run(() => this.#jobs.recover())
      .catch(() => undefined)
      .finally(() => { this.#changed(); }); // prettier-ignore
  }

  async #glance(): Promise<Glance> {
    return this.#link.run(() => this.#index.glance(TICK_MS));
  }

  async #find(id: string, state: keyof OutboxCounts): Promise<Found | undefined> {
    const [found] = await this.#findAll([id]);
    return found?.state === state ? found : undefined;
  }

  async #findAll(ids: readonly string[]): Promise<readonly Found[]> {
    const [states, jobs] = await Promise.all([
      this.#index.states(ids),
      Promise.all(ids.map((id) => this.#jobs.get(id))),
    ]);
    return ids.flatMap((id, n) => {
      const [job, state] = [jobs[n], states[n]];
      return job && state ? [{ id, job, ...state }] : [];
    });
  }

  async #end(
    { id, job }: Pick<Found, 'id' | 'job'>,
    from: keyof OutboxCounts | '',
    outcome?: Outcome,
    attempts = 0,
  ): Promise<boolean> {
    const { entry, uidHash } = job.data;
    const record: FinishedEntry | undefined = outcome && finishedEntry(entry, outcome, attempts);
    return this.#index.end(id, from, uidHash, record, this.#context.keepFinishedMs);
  }
}
