import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Job, Queue, WorkerOptions } from 'bullmq';
import { inTime } from '../../in-time.js';
import type { SealedEntry } from '../sealed-entry.js';
import { FRESH, jobData, type LogoutJobData } from './job-data.js';
import { loadBullmq } from './optional-packages.js';

export type LogoutJob = Job<LogoutJobData> & { id: string };

/** How often a process looks after what others left. */
export const TICK_MS = 5_000;
const LOCK_MS = 10_000;
const CLOSE_MS = 500;
const ID = 'logout-';

/**
 * The jobs in BullMQ. One that is claimed does not stay active, but is delayed until its lease is over: BullMQ gives it
 * out again by itself then, to the millisecond. For an active one it would need two rounds of its check for stalled jobs.
 */
export class LogoutJobs {
  readonly #queue: Queue<LogoutJobData>;
  readonly #token = randomUUID();

  private constructor(queue: Queue<LogoutJobData>) {
    this.#queue = queue;
    queue.on('error', () => undefined); // the link tells whoever calls
  }

  static async open(client: Redis, prefix: string, namespace: string): Promise<LogoutJobs> {
    const { Queue } = await loadBullmq();
    const options: WorkerOptions = {
      connection: client,
      prefix,
      skipVersionCheck: true, // it would write to the host's console
      skipWaitingForReady: true,
      lockDuration: LOCK_MS,
      stalledInterval: TICK_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER, // or a worker of BullMQ's own would let it fail after two deaths
    };
    return new LogoutJobs(new Queue<LogoutJobData>(`logouts-${namespace}`, options));
  }

  /** Digits alone BullMQ refuses, a colon too; and without the beginning it might be the name of one of BullMQ's keys. */
  idOf(entryId: string): string {
    return ID + encodeURIComponent(entryId);
  }

  /** The whole name in Redis of a job, or of `delayed`, `wait`, `active` and `meta`. */
  key(name: string): string {
    return this.#queue.toKey(name);
  }

  /** Due when the lease is over. Ignored when there is such a job. */
  async add(id: string, entry: SealedEntry, uidHash: string, leaseMs: number): Promise<void> {
    const options = { jobId: id, delay: leaseMs, removeOnFail: false };
    await this.#queue.add('logout', { entry, uidHash, progress: FRESH }, options);
  }

  async get(id: string): Promise<LogoutJob | undefined> {
    const job = (await this.#queue.getJob(id)) as LogoutJob | undefined;
    if (job) job.data = jobData(entryIdOf(id), job.data);
    return job;
  }

  /** The next that is due, locked for a moment; {@link postpone} it before anything else. */
  async next(): Promise<{ readonly id: string; readonly data: LogoutJobData } | undefined> {
    const [job, id] = (await this.#queue.getBackend().moveToActive(this.#token)) as [
      { readonly data: string } | null | undefined,
      string,
    ];
    return job ? { id, data: jobData(entryIdOf(id), await this.#parsed(id, job.data)) } : undefined;
  }

  /** What {@link next} gave is due again after so long. @returns whether it was still there */
  async postpone(id: string, ms: number): Promise<boolean> {
    const backend = this.#queue.getBackend();
    return fits(backend.moveToDelayed(id, Date.now(), ms, this.#token, { skipAttempt: true }));
  }

  /** What is delayed is due after so long, as of now. @returns whether it was delayed */
  async delay(id: string, ms: number): Promise<boolean> {
    return fits(this.#queue.getBackend().changeDelay(id, ms));
  }

  async promote(id: string): Promise<boolean> {
    return fits(this.#queue.getBackend().promote(id));
  }

  async update(job: LogoutJob, data: LogoutJobData): Promise<boolean> {
    return fits(job.updateData(data));
  }

  /** What is active fails, and stays. `0` is BullMQ's word for a job that nobody has locked. */
  async fail(job: LogoutJob, reason: string): Promise<boolean> {
    return fits(this.#queue.getBackend().moveToFailed(job, reason, false, '0', false));
  }

  /** What has failed is due at once. @returns whether it had */
  async again(job: LogoutJob): Promise<boolean> {
    return fits(this.#queue.getBackend().retryFinishedJob(job, 'failed'));
  }

  async remove(id: string): Promise<void> {
    await this.#queue.getBackend().remove(id, false);
  }

  /** Makes what a process had taken and not postponed, because it died, wait again. */
  async recover(): Promise<void> {
    await this.#queue.getBackend().moveStalledJobsToWait();
  }

  /** What is no JSON is replaced: BullMQ could not read the job any more, nor those that it reads with it. */
  async #parsed(id: string, data: string): Promise<unknown> {
    try {
      return JSON.parse(data);
    } catch {
      await this.#queue.getBackend().updateData({ id } as LogoutJob, null);
      return null;
    }
  }

  async close(): Promise<void> {
    await inTime(this.#queue.close().catch(() => undefined), CLOSE_MS, undefined); // prettier-ignore
  }
}

function entryIdOf(id: string): string {
  return decodeURIComponent(id.slice(ID.length));
}

/** BullMQ rejects with a number when a job is gone, locked or in another state: somebody else was faster. */
async function fits(change: Promise<unknown>): Promise<boolean> {
  try {
    await change;
    return true;
  } catch (error) {
    if (typeof (error as { code?: unknown }).code === 'number') return false;
    throw error;
  }
}
