import { type Job, type JobQueue, Transaction, UnreadableRecord } from 'durable-jobs';
import type { ErasureMode } from '../../events.js';
import { isRunning, type ErasureChange, type ErasureEnd } from './erasure-batch.js';
import type { ErasureMaintenance } from './erasure-maintenance.js';
import * as records from './erasure-records.js';
import { BATCH, type StoredBatch, type StoredErasure } from './erasure-records.js';
import { type ErasureStorage, UNREADABLE_HINT } from './erasure-storage.js';

const AFTER_THE_DELETION_MS = 60_000;
const UNREADABLE_BATCH_MS = 60_000;

/** What became of an attempt that did not bring the end. */
export interface Setback {
  readonly cause: string;
  /** Whether this attempt may have been carried out. */
  readonly unknown: boolean;
  /** Whether the operation was sent. */
  readonly sent: boolean;
  /** How many of the logouts before it the service has answered with 400. */
  readonly rejections: number;
}

/** One user's erasure that this process carries out before its lease ends, as it was when it was claimed. */
export interface ErasureClaim extends Omit<StoredErasure, 'sealed' | 'since' | 'cause'> {
  readonly job: Job<StoredErasure>;
  readonly reference: string;
  readonly mode: ErasureMode;
  readonly uidHash: string;
  /** Absent when it cannot be read: then it is to be parked, with the hint. */
  readonly uid?: string | undefined;
  readonly hint?: string | undefined;
  /** Who asked. */
  readonly requestedBy?: string | undefined;
  /** Milliseconds since it was requested, retried or resumed, by the clock of the storage; `erasure.giveUpAfterMs` bounds it. */
  readonly ageMs: number;
}

/** The erasures to carry out. A claim whose lease was lost changes nothing – except by {@link finish}. */
export class ErasureQueue implements JobQueue<ErasureClaim> {
  constructor(
    private readonly storage: ErasureStorage,
    private readonly maintenance: ErasureMaintenance,
  ) {}

  async claim(limit: number): Promise<readonly ErasureClaim[]> {
    const { jobs, view } = this.storage;
    const claimed = await jobs.claim(limit);
    try {
      const references = [...new Set(claimed.map(({ id }) => records.referenceOf(id)))];
      const found = await new Transaction(view).readAll(BATCH, references.map(records.batchKey));
      const batches = new Map(references.map((reference, n) => [reference, found[n]]));
      const claims: ErasureClaim[] = [];
      for (const job of claimed) {
        const reference = records.referenceOf(job.id);
        const batch = batches.get(reference);
        const claim = batch && !(batch instanceof UnreadableRecord) ? this.#claimOf(job, batch) : undefined;
        if (batch instanceof UnreadableRecord) {
          this.maintenance.reportUnreadable(reference, batch);
          await jobs.retry(job, UNREADABLE_BATCH_MS);
        } else if (!batch) await jobs.remove(job.id);
        else if (batch.canceling && !job.value.unknown) await this.#cancel(job);
        else if (claim && (await this.#isToBeDeleted(claim))) await jobs.retry(job, AFTER_THE_DELETION_MS);
        else if (claim) claims.push(claim);
      }
      return claims;
    } catch (error) {
      await jobs.giveBack(claimed).catch(() => undefined); // they are due when their leases end
      throw error;
    }
  }

  renew(claims: readonly ErasureClaim[]): Promise<void> {
    return this.storage.jobs.renew(claims.map(({ job }) => job));
  }

  giveBack(claims: readonly ErasureClaim[]): Promise<void> {
    return this.storage.jobs.giveBack(claims.map(({ job }) => job));
  }

  release({ job }: ErasureClaim): void {
    this.storage.jobs.release(job);
  }

  nextDueMs(): Promise<number | undefined> {
    return this.storage.jobs.nextDueMs();
  }

  maintain(): Promise<void> {
    return this.maintenance.run();
  }

  onChange(listener: () => void): () => void {
    return this.storage.jobs.onChange(listener);
  }

  /** Whether a claim is as old, by a clock that can be trusted. */
  isLate(ageMs: number, limitMs: number): boolean {
    return ageMs >= limitMs && this.storage.isSteady(limitMs);
  }

  /**
   * To be called immediately before the request is sent: from then on the erasure may have been carried out, whatever is
   * heard of it.
   * @returns whether it may be sent; `false` when it was canceled or paused meanwhile, when the same user is to be deleted
   * now, or when the lease was lost
   */
  async markSending(claim: ErasureClaim): Promise<boolean> {
    if (await this.#isToBeDeleted(claim)) return false;
    const { job, attempts, unknown } = claim;
    return this.#change(job, async (change) => {
      const batch = await change.find();
      if (!batch || !isRunning(batch) || (batch.canceling && !unknown)) return false;
      const sending = { ...job.value, attempts: attempts + 1, unknown: true };
      if (!(await this.storage.jobs.updateIn(change.transaction, job, sending))) return false;
      if (!batch.started) (await change.edit()).started = true;
      return true;
    });
  }

  /** Makes it due again after the delay. */
  async retry(claim: ErasureClaim, setback: Setback, delayMs: number): Promise<void> {
    const { job, uidHash } = claim;
    await this.#change(job, async (change) => {
      const value = tried(claim, setback);
      const isMade = await this.storage.jobs.retryIn(change.transaction, job, delayMs, value);
      const batch = await change.find();
      if (isMade && batch && batch.retrying !== uidHash) (await change.edit()).retrying = uidHash;
    });
  }

  /** Stops trying, until somebody retries or cancels it. */
  async park(claim: ErasureClaim, setback: Setback, hint: string): Promise<void> {
    await this.storage.jobs.park(claim.job, hint, tried(claim, setback));
    this.storage.changed();
  }

  /**
   * Ends it, with a receipt – also when the lease was lost: what is done is done.
   * @param announce called when it is made, before a reference is reported that is finished by it, with the number of
   * requests that were sent
   */
  async finish(claim: ErasureClaim, end: ErasureEnd, announce?: (attempts: number) => void): Promise<void> {
    const { job, uidHash } = claim;
    const { jobs } = this.storage;
    const settle = (attempts: number | undefined): void => {
      if (attempts !== undefined) announce?.(attempts);
    };
    await this.#change(
      job,
      async (change) => {
        const [found] = await jobs.findIn(change.transaction, [job.id]);
        if (found?.stored?.born !== job.born) return undefined;
        if (!(await change.find())) {
          await jobs.retryIn(change.transaction, job, UNREADABLE_BATCH_MS, found.job?.value);
          return undefined;
        }
        const erasure = found.job?.value ?? job.value;
        await jobs.finishIn(change.transaction, job);
        await change.settle(uidHash, erasure, end);
        return erasure.attempts;
      },
      settle,
    );
  }

  /** A change of one job, in the order of those about it: its lease is not renewed meanwhile. */
  #change<T>(
    { id }: Job<StoredErasure>,
    work: (change: ErasureChange) => Promise<T>,
    announce?: (result: T) => void,
  ): Promise<T> {
    const prefetched = async (change: ErasureChange): Promise<T> => {
      await change.prefetch([id]);
      return work(change);
    };
    const { storage } = this;
    return storage.jobs.exclusively(id, () => storage.change(records.referenceOf(id), prefetched, announce));
  }

  #claimOf(job: Job<StoredErasure>, batch: StoredBatch): ErasureClaim {
    const { value, key: uidHash } = job;
    const { reference, requestedBy, resumedSince = 0 } = batch;
    const { mode, attempts, failures, unknown, rejections } = value;
    const uid = mode === batch.mode ? this.storage.open(job) : undefined;
    const now = this.storage.now();
    const begun = [value.since, resumedSince].filter((moment) => moment <= now);
    return {
      job,
      reference,
      mode,
      uidHash,
      uid,
      hint: uid === undefined ? UNREADABLE_HINT : undefined,
      requestedBy,
      ageMs: begun.length === 0 ? 0 : now - Math.max(...begun),
      ...{ attempts, failures, unknown, rejections },
    };
  }

  /**
   * Whether an anonymization has to wait for the deletion of the same user. Anonymized first, nobody could delete the
   * contributions any more: the service would not know the uid.
   */
  async #isToBeDeleted({ mode, uid }: ErasureClaim): Promise<boolean> {
    return (
      mode === 'anonymize' && uid !== undefined && (await this.storage.running(uid, 'delete')).length > 0
    );
  }

  /** What a cancellation that a crash interrupted has left. */
  async #cancel(job: Job<StoredErasure>): Promise<void> {
    await this.#change(job, async (change) => {
      if (!(await this.storage.jobs.finishIn(change.transaction, job))) return;
      (await change.edit()).canceled += 1;
    });
  }
}

function tried({ job, attempts, failures, unknown }: ErasureClaim, setback: Setback): StoredErasure {
  return {
    ...job.value,
    attempts: attempts + Number(setback.sent),
    failures: failures + 1,
    unknown: unknown || setback.unknown,
    rejections: setback.rejections,
    cause: setback.cause,
  };
}
