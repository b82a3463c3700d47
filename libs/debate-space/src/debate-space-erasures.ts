import { randomUUID } from 'node:crypto';
import type { Observable } from 'rxjs';
import type { Emit } from './debate-space-event.js';
import { StorageError } from './errors.js';
import { batchRequest } from './erasure/batch-request.js';
import { dryRun, type ErasureDryRun } from './erasure/dry-run.js';
import type {
  ErasureMode,
  ErasureProgress,
  ErasureReceipt,
  ErasureRequest,
  ErasureStatus,
  RequestedErasure,
} from './erasure/erasure.js';
import { watchProgress } from './erasure/erasure-progress.js';
import type { ErasureControl } from './erasure/erasure-control.js';
import type { BatchRequest } from './erasure/erasure-batch.js';
import { USERS_PER_COMMIT, type ErasureRequests } from './erasure/erasure-requests.js';
import type { ErasureStorage } from './erasure/erasure-storage.js';
import { untilAborted } from './erasure/until-aborted.js';
import { uidItems, uidsOf, type UidSource } from './erasure/uid-source.js';
import { assertUid } from './remote/uid.js';
import type { DebateSpaceUser } from './remote/user-list.js';

/** Many users to be erased under one reference. */
export interface BulkErasureRequest extends Omit<ErasureRequest, 'uid' | 'reference'> {
  /** The name of this erasure, by which it is asked for again; see `ErasureRequest`. */
  readonly reference: string;
  /** Ends the reading early; what was read is kept, and nothing of it carried out. */
  readonly signal?: AbortSignal | undefined;
}

export interface DryRunOptions {
  /** Counts what is under way in this mode only. Default: in both. */
  readonly mode?: ErasureMode | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ErasuresParts {
  readonly requests: ErasureRequests;
  readonly control: ErasureControl;
  readonly storage: ErasureStorage;
  readonly users: (signal: AbortSignal | undefined) => AsyncIterable<DebateSpaceUser>;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
  /** Whether what is asked for outlives the process. */
  readonly durable: boolean;
  readonly emit: Emit;
}

/**
 * Durable, idempotent erasures with receipts. An accepted request is stored and carried out in the background: log out,
 * then anonymize or delete (service-interface.md, sections 4.2 and 4.3). Injectable.
 *
 * Every method rejects with a {@link StorageError} when the storage cannot be reached. After a rejected `request` or
 * `requestMany` it is unknown whether the erasure was stored: the error has its `reference`, also when the caller gave
 * none. See `status(reference)`, or repeat the call.
 */
export class DebateSpaceErasures {
  readonly #parts: ErasuresParts;
  #warned = false;

  constructor(parts: ErasuresParts) {
    this.#parts = parts;
  }

  /**
   * Requests one user's erasure; resolves when it is durable. The same user in the same mode is erased once, however
   * often it is requested: `alreadyUnderWay` says so, and without a `reference` the answer is the status of the earlier
   * request.
   *
   * With a `transaction` the erasure exists exactly if the host commits. Errors are those of the host's connection: repeat
   * the transaction on 40001 and 40P01 as always. There is no event `erasure-requested`, because the commit is the host's;
   * the runner finds the erasure within seconds after it.
   *
   * @example
   * await client.query('BEGIN');
   * await client.query('DELETE FROM users WHERE id = $1', [id]);
   * await erasures.request({ uid: id, mode: 'delete', transaction: client });
   * await client.query('COMMIT');
   *
   * @throws {@link InvalidUidError} before anything is stored
   * @throws {@link InvalidArgumentError} before anything is stored; also when the storage has no `transaction`
   * @throws {@link ErasureError} when the reference stands for something else, or its record cannot be read
   */
  async request(request: ErasureRequest): Promise<RequestedErasure> {
    const { uid, transaction } = request;
    assertUid(uid, 'requestErasure');
    const asked = batchRequest({ ...request, reference: request.reference ?? randomUUID() });
    const requests = this.#parts.requests.within(transaction);
    this.#warnOfMemory();
    let { reference } = asked;
    try {
      const earlier = request.reference === undefined ? await requests.underWay(uid, asked.mode) : undefined;
      if (earlier !== undefined) {
        reference = earlier;
        return { ...(await requests.register.status(earlier)), alreadyUnderWay: true };
      }
      const alreadyUnderWay = await requests.add(asked, uid);
      return { ...(await this.#requested(asked, requests)), alreadyUnderWay };
    } catch (error) {
      throw named(error, reference);
    }
  }

  /**
   * Requests the erasure of many users, in commits of 250; resolves when all of them are durable, and only then the first
   * is carried out. When it rejects or the process dies before, what was read is kept, marked as not `complete`: the same
   * call continues from there, `cancel` gives it up. Users that the reference has already are skipped, so calling it again
   * is safe; once the list is complete, others need a reference of their own.
   *
   * With a `transaction` as in {@link request}: when it rejects, the host must roll back. Two such transactions that have
   * users in common may deadlock; the host then repeats one of them (40P01).
   *
   * @param source uids, read as they are needed, and never held. Text has to be parsed first: docs/gdpr.md
   * @throws {@link InvalidArgumentError} for an item that is no uid, with its number; when the storage has no `transaction`
   * @throws {@link ErasureError} when the reference stands for something else, or its record cannot be read
   * @throws `AbortError`
   */
  async requestMany(source: UidSource, request: BulkErasureRequest): Promise<ErasureStatus> {
    const asked = batchRequest(request);
    const requests = this.#parts.requests.within(request.transaction);
    this.#warnOfMemory();
    const { signal } = request;
    const all = untilAborted(uidsOf(source), signal);
    signal?.throwIfAborted();
    const reader = randomUUID();
    try {
      await requests.beginList(asked, reader);
      for await (const uids of chunksOf(all)) await requests.addSome(asked, reader, uids);
      await requests.endList(asked, reader);
      return await this.#requested(asked, requests);
    } catch (error) {
      throw named(error, asked.reference);
    }
  }

  /**
   * What `requestMany` would meet: how many uids the source has, and how many of them the service knows. Nothing is
   * stored, and nothing sent but the questions for the user list, page by page. The distinct uids are kept in memory until
   * it resolves: about 85 MB for a million UUIDs.
   * @throws {@link InvalidArgumentError} when the source gives no uids but text or bytes
   * @throws {@link DebateSpaceRequestError} when the user list cannot be read
   */
  async dryRun(source: UidSource, options: DryRunOptions = {}): Promise<ErasureDryRun> {
    const { requests, users } = this.#parts;
    const modes = options.mode === undefined ? (['anonymize', 'delete'] as const) : [options.mode];
    const items = untilAborted(uidItems(source), options.signal);
    return dryRun(items, users(options.signal), (uids) => requests.countUnderWay(uids, modes));
  }

  /** @throws {@link ErasureError} when there is no such reference, or its record cannot be read */
  async status(reference: string): Promise<ErasureStatus> {
    return this.#parts.requests.register.status(reference);
  }

  /**
   * All references that are not finished or whose receipts are kept, the newest first. One whose record cannot be read is
   * skipped; `status` says why.
   */
  list(): AsyncIterable<ErasureStatus> {
    return this.#parts.requests.register.list();
  }

  /**
   * The progress, immediately and whenever it changes, whichever instance does the work; a paused reference is waited for.
   * Completes with the work – when all users are finished or parked – or with the app.
   */
  progress(reference: string): Observable<ErasureProgress> {
    const { requests, storage, closing } = this.#parts;
    return watchProgress(requests.register, storage, reference, closing);
  }

  /**
   * The receipts of a reference, in no particular order, a page at a time, without those that cannot be read.
   * @throws {@link ErasureError} from the loop
   */
  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    const { register } = this.#parts.requests;
    await register.status(reference);
    yield* register.receipts(reference);
  }

  /**
   * The receipts of one user: that, when and how the service erased the uid.
   * @throws {@link InvalidUidError}
   */
  receiptsOf(uid: string): AsyncIterable<ErasureReceipt> {
    assertUid(uid, 'requestErasure');
    return this.#parts.requests.register.receiptsOf(uid);
  }

  /** Begins no further one, on no instance; those under way are finished. @throws {@link ErasureError} */
  async pause(reference: string): Promise<ErasureStatus> {
    const status = await this.#parts.control.pause(reference);
    this.#parts.emit({ type: 'erasure-paused', reference, mode: status.mode });
    return status;
  }

  /** Continues after a pause. Parked users stay parked; see {@link retry}. @throws {@link ErasureError} */
  async resume(reference: string): Promise<ErasureStatus> {
    const status = await this.#parts.control.resume(reference);
    this.#parts.emit({ type: 'erasure-resumed', reference, mode: status.mode });
    return status;
  }

  /**
   * Tries the parked users of a reference again: those that failed for `erasure.giveUpAfterMs`, and those whose records
   * could not be read and can be now. A paused reference stays paused.
   * @throws {@link ErasureError}
   */
  retry(reference: string): Promise<ErasureStatus> {
    return this.#parts.control.retry(reference);
  }

  /**
   * Gives up the users of whom nothing was sent, and the parked ones; what the service may have done already is continued
   * until its receipt.
   * @throws {@link ErasureError}
   */
  async cancel(reference: string): Promise<ErasureStatus> {
    const { control, emit } = this.#parts;
    const status = await control.cancel(reference);
    emit({ type: 'erasure-cancelled', reference, mode: status.mode, count: status.cancelled });
    if (status.finishedAt) this.#finished(status);
    return status;
  }

  async #requested({ reference }: BatchRequest, { register }: ErasureRequests): Promise<ErasureStatus> {
    const { requests, emit } = this.#parts;
    const status = await register.status(reference);
    if (register !== requests.register) return status; // whether the host commits is not known
    const { mode, requestedBy, total } = status;
    emit({ type: 'erasure-requested', reference, mode, requestedBy, total });
    if (total === 0) this.#finished(status);
    return status;
  }

  #finished({ reference, mode, total, done, notFound, vetoed, cancelled }: ErasureStatus): void {
    this.#parts.emit({ type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, cancelled });
  }

  #warnOfMemory(): void {
    const { durable, emit } = this.#parts;
    if (!durable && !this.#warned) emit({ type: 'erasures-in-memory' });
    this.#warned = true;
  }
}

/** A `StorageError` names the erasure, so that the caller can look whether it was stored. */
function named(error: unknown, reference: string): unknown {
  return error instanceof StorageError ? new StorageError(`Erasure ${reference}: ${error.message}`, reference) : error; // prettier-ignore
}

/** As many as are added in one commit. */
async function* chunksOf(uids: AsyncIterable<string>): AsyncGenerator<readonly string[]> {
  let chunk: string[] = [];
  for await (const uid of uids) {
    chunk.push(uid);
    if (chunk.length < USERS_PER_COMMIT) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
