import { randomUUID } from 'node:crypto';
import { fullJitter, CircuitBreaker } from './circuit-breaker.js';
import { Containment } from './containment.js';
import { FORMAT_FAMILY, FormatRow } from './format-row.js';
import { JobContents, type Content } from './job-contents.js';
import type { JobKind } from './job-kind.js';
import { groupOf, jobFamilies, type FoundJob, type Job } from './job-records.js';
import { JobRunner } from './job-runner.js';
import { JobStore } from './job-store.js';
import { StorageError, type Storage, type StorageEngine } from './storage.js';
import { transact } from './transaction.js';

/** What `openJobs` takes besides the storage. */
export interface JobsOptions {
  /** Separates apps that share a place: `[A-Za-z0-9_-]` only. */
  readonly namespace: string;
  /**
   * Encrypts payloads and hashes keys. Of several, the first one encrypts and all decrypt.
   * @defaultValue none: payloads are stored as they are
   */
  readonly storageKey?: string | readonly string[];
  /**
   * Called with what a handler throws, with what fails in the background, and with what an operator should change at the
   * storage. `where` is a kind, or `storage`. What it
   * throws itself is dropped.
   * @defaultValue a process warning with the name of the error
   */
  readonly onFault?: (where: string, error: unknown) => void;
}

/** Identifies a job. The jobs that {@link Jobs.parked} and {@link Jobs.find} return fit. */
export interface JobName {
  readonly kind: string;
  readonly id: string;
}

/** A job that {@link Jobs.add} stores. */
export interface JobToAdd {
  /** Which handler works it. */
  readonly kind: string;
  /** Passed to the handler. */
  readonly payload: string;
  /** {@link Jobs.find} finds the job by it: a user id, for example. Stored as a hash. */
  readonly key?: string;
  /** Jobs of a group can be paused together. */
  readonly group?: string;
  /** A job is not added again while there is one of the same kind, group and id. @defaultValue random */
  readonly id?: string;
}

/** A job as its handler gets it, and as {@link Jobs.parked} and {@link Jobs.find} return it. */
export interface WaitingJob extends JobName {
  readonly payload: string;
  readonly key?: string;
  readonly group?: string;
  /** How often its handler was called before. */
  readonly attempts: number;
  /** Why it is parked. */
  readonly hint?: string;
}

/** The result of a handler: nothing when the job is done, or the next step. */
export type JobOutcome =
  // eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a handler that returns nothing
  void | undefined | { readonly retryAt: Date | number } | { readonly park: string };

/**
 * Works one job: when it returns, the job is done; when it throws, the job is retried, and with {@link ParkJob} parked.
 * @param signal aborted when the jobs are closed before the handler has returned
 */
export type JobHandler = (job: WaitingJob, signal: AbortSignal) => JobOutcome | Promise<JobOutcome>;

/** Thrown by a handler: the job is parked until somebody retries it. */
export class ParkJob extends Error {
  readonly hint: string;

  /** @param hint why, and what to do about it; stored with the job, so no personal data */
  constructor(hint: string) {
    super(hint);
    this.hint = hint;
    this.name = 'ParkJob';
  }
}

/** What came of calling a handler. */
type Attempt = { readonly failures?: number } & (
  | { readonly next: 'finish' | 'give back' }
  | { readonly next: 'park'; readonly hint: string }
  | { readonly next: 'retry'; readonly delayMs: number }
);

const FAMILY = 'job';
const CONCURRENCY = 8;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;
const CLOSE_MS = 5_000;
const AFTER_ABORT_MS = 1_000;
const MAX_ID = 1_300;
const UNREADABLE =
  'this job cannot be read: it is damaged, or was written by a newer version or with another storageKey. Run that version ' +
  'or restore that key and retry it, or cancel it';

/**
 * Opens the jobs that are kept in a place.
 * @param engine `lmdbStorage({ path })`, `redisStorage(…)`, `postgresStorage(…)`, `memoryStorage()`, or your own
 * @throws {@link StorageError} when the place cannot be used, or was written by a newer version
 */
export async function openJobs(engine: StorageEngine, options: JobsOptions): Promise<Jobs> {
  const { namespace, onFault = warn } = options;
  const containment = new Containment(onFault);
  const contained = (work: () => void): void => {
    containment.run('storage', work);
  };
  const storage = await engine.open({
    namespace,
    families: [...jobFamilies(FAMILY), FORMAT_FAMILY],
    contained,
  });
  try {
    return new Jobs(storage, await FormatRow.open(storage), containment, options);
  } catch (error) {
    await storage.close();
    throw error;
  }
}

/** The jobs in a place: adds them, and works them. Get it by {@link openJobs}. */
export class Jobs {
  readonly #storage: Storage;
  readonly #format: FormatRow;
  readonly #containment: Containment;
  readonly #contents: JobContents;
  readonly #stores = new Map<string, JobStore<Content>>();
  readonly #runners = new Map<string, JobRunner>();
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  /** @internal */
  constructor(storage: Storage, format: FormatRow, containment: Containment, options: JobsOptions) {
    const { namespace, storageKey = [] } = options;
    this.#storage = storage;
    this.#format = format;
    this.#containment = containment;
    this.#contents = new JobContents(namespace, typeof storageKey === 'string' ? [storageKey] : storageKey);
    for (const { problem, hint } of storage.warnings ?? [])
      containment.report('storage', new StorageError(problem, hint));
    format.start((problem = 'The storage was emptied: the jobs that were in it are lost') => {
      containment.report('storage', new StorageError(problem));
    });
  }

  /**
   * Adds jobs that are due now: those of one kind in one commit, which has been made when this resolves. A job that is there
   * already stays as it is.
   * @returns the jobs by name, in the same order
   * @throws {@link StorageError} when the storage does not answer: they may have been added; add them again with the same ids
   */
  async add(jobs: readonly JobToAdd[]): Promise<readonly JobName[]> {
    const named = jobs.map((job) => ({ ...job, id: idOf(job) }));
    for (const kind of new Set(named.map((job) => job.kind))) {
      const ofKind = named.filter((job) => job.kind === kind);
      await this.#storeOf(kind).add(
        ofKind.map(({ id, payload, key }) => ({
          id,
          key: key === undefined ? '' : this.#contents.hash(key),
          value: { payload, key, attempts: 0, failures: 0 },
        })),
      );
    }
    return named.map(({ kind, id }) => ({ kind, id }));
  }

  /**
   * Works the jobs of a kind from now on, in this process and any other that does so. A handler that returns finishes the
   * job; when it throws, it is called again after a random time that doubles from 1 s up to 5 minutes. It may be called twice
   * for a job that is done, after a crash for example.
   */
  work(kind: string, handler: JobHandler, { concurrency = CONCURRENCY } = {}): void {
    if (this.#closed) throw new TypeError('The jobs are closed');
    if (this.#runners.has(kind)) throw new TypeError('This kind has a handler already');
    const store = this.#storeOf(kind);
    const runner = new JobRunner((where, error) => {
      this.#containment.report(where, error);
    });
    const jobKind: JobKind<Job<Content>> = {
      name: kind,
      queue: store,
      breaker: new CircuitBreaker(concurrency, () => undefined), // which hears of no failures: it only counts
      batch: concurrency,
      pauseMs: () => 0,
      execute: (claim) => this.#execute(kind, claim, handler),
    };
    runner.add(jobKind);
    runner.start();
    this.#runners.set(kind, runner);
  }

  /** At most `limit` parked jobs of a kind, the longest parked first. */
  async parked(kind: string, { limit = 100, skip = 0 } = {}): Promise<readonly WaitingJob[]> {
    return this.#waiting(kind, await this.#storeOf(kind).list('parked', { limit, skip }));
  }

  /** The jobs of a kind that were added with this key and are not done. */
  async find({ kind, key }: { readonly kind: string; readonly key: string }): Promise<readonly WaitingJob[]> {
    return this.#waiting(kind, await this.#storeOf(kind).find(this.#contents.hashes(key)));
  }

  /** A parked job is due now, as if it had never been tried. @returns `false` when it is not parked or cannot be read */
  retry({ kind, id }: JobName): Promise<boolean> {
    return this.#storeOf(kind).retryParked(id, ({ value }) => ({ ...value, attempts: 0, failures: 0 }));
  }

  /** Removes a job. One whose handler runs now is not stopped. @returns whether it was there */
  cancel({ kind, id }: JobName): Promise<boolean> {
    return this.#storeOf(kind).remove(id);
  }

  /** Begins no job of a group any more, in no process, before it is resumed. @returns `false` when it was paused already */
  pause(kind: string, group: string): Promise<boolean> {
    const store = this.#storeOf(kind);
    return transact(this.#storage, (transaction) => store.pauseGroupIn(transaction, encoded(group)));
  }

  /** @returns `false` when it was not paused */
  resume(kind: string, group: string): Promise<boolean> {
    const store = this.#storeOf(kind);
    return transact(this.#storage, (transaction) => store.resumeGroupIn(transaction, encoded(group)));
  }

  /** How many jobs of all kinds there are; may be a second old. `pending`: due, due later, or being worked. */
  stats(): Promise<{ readonly pending: number; readonly parked: number }> {
    return this.#storeOf('').counts();
  }

  /**
   * Starts no more jobs, waits for the running ones, and closes the storage. After `timeoutMs` their signal is aborted, and
   * a second later they are left to themselves: they are due again when their leases end.
   */
  close({ timeoutMs = CLOSE_MS } = {}): Promise<void> {
    this.#closed ??= this.#close(timeoutMs);
    return this.#closed;
  }

  async #close(timeoutMs: number): Promise<void> {
    const runners = [...this.#runners.values()];
    for (const runner of runners) runner.stop();
    await Promise.all(runners.map((runner) => runner.idle(timeoutMs)));
    this.#closing.abort();
    await Promise.all(runners.map((runner) => runner.idle(AFTER_ABORT_MS)));
    this.#format.stop();
    await this.#storage.close();
  }

  async #execute(kind: string, claim: Job<Content>, handler: JobHandler): Promise<void> {
    const store = this.#storeOf(kind);
    if (!store.isHeld(claim)) return; // canceled since it was claimed
    const result = await this.#attempt(kind, claim, handler);
    const attempts = claim.value.attempts + 1;
    const { failures = 0 } = result;
    const value = { ...claim.value, attempts, failures };
    if (result.next === 'finish') await store.finish(claim);
    else if (result.next === 'park') await store.park(claim, result.hint, value);
    else if (result.next === 'retry') await store.retry(claim, result.delayMs, value);
    else await store.giveBack([claim]);
  }

  async #attempt(kind: string, claim: Job<Content>, handler: JobHandler): Promise<Attempt> {
    const failures = claim.value.failures + 1;
    const { signal } = this.#closing;
    try {
      return attemptOf(await handler(waitingJob(kind, claim), signal));
    } catch (error) {
      if (error instanceof ParkJob) return { next: 'park', hint: error.hint, failures };
      if (signal.aborted) return { next: 'give back' };
      this.#containment.report(kind, error);
      return { next: 'retry', delayMs: fullJitter(failures, FIRST_RETRY_MS, MAX_RETRY_MS), failures };
    }
  }

  #storeOf(kind: string): JobStore<Content> {
    const known = this.#stores.get(kind);
    if (known) return known;
    const store = new JobStore<Content>(this.#storage, {
      name: FAMILY,
      prefix: `${encoded(kind)}:`,
      codec: this.#contents.codecOf(kind),
      unreadableHint: UNREADABLE,
    });
    this.#stores.set(kind, store);
    return store;
  }

  #waiting(kind: string, found: readonly FoundJob<Content>[]): readonly WaitingJob[] {
    return found.map(({ id, job, parked }) => ({
      ...(job ? waitingJob(kind, job) : { kind, id, payload: '', attempts: 0 }),
      ...(parked && { hint: parked.hint }),
    }));
  }
}

/** As part of a key: printable ASCII without `:` and `/`. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

function idOf({ kind, payload, group, id }: JobToAdd): string {
  if (typeof kind !== 'string' || typeof payload !== 'string' || kind === '' || id === '' || group === '')
    throw new TypeError(
      'A job needs a kind and a payload, which are texts; a group or an id cannot be empty',
    );
  const own = id === undefined ? `${String(Date.now()).padStart(15, '0')}-${randomUUID()}` : encoded(id);
  const whole = group === undefined ? own : `${encoded(group)}/${own}`;
  if (whole.length + encoded(kind).length > MAX_ID)
    throw new TypeError(
      `The kind, the group and the id of a job have ${MAX_ID} characters at most, as URI components`,
    );
  return whole;
}

function waitingJob(kind: string, { id, value }: Job<Content>): WaitingJob {
  const { payload, key, attempts } = value;
  const group = groupOf(id);
  return {
    kind,
    id,
    payload,
    ...(key !== undefined && { key }),
    ...(group !== undefined && { group: decodeURIComponent(group) }),
    attempts,
  };
}

function attemptOf(outcome: unknown): Attempt {
  if (outcome === undefined) return { next: 'finish' };
  const { park, retryAt } = Object(outcome) as { park?: unknown; retryAt?: unknown };
  if (typeof park === 'string') return { next: 'park', hint: park };
  const at = retryAt instanceof Date ? retryAt.getTime() : retryAt;
  if (typeof at !== 'number' || Number.isNaN(at))
    throw new TypeError('A handler returns nothing, { retryAt } or { park }');
  return { next: 'retry', delayMs: Math.max(0, at - Date.now()) };
}

function warn(where: string, error: unknown): void {
  const name =
    error instanceof StorageError ? error.message : error instanceof Error ? error.name : typeof error;
  process.emitWarning(`${where}: ${name}`, 'DurableJobsWarning');
}
