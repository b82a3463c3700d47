import { randomUUID } from 'node:crypto';
import { acceptedUid, namedUid } from '../uid-rule.js';
import type { Observable } from 'rxjs';
import type { Emit, ErasureMode } from '../events.js';
import { StorageError } from '../errors.js';
import type { ErasureCalls } from '../erasure/erasure-calls.js';
import { ErasureControl } from '../erasure/erasure-control.js';
import { watchProgress, type JobPace } from '../erasure/erasure-progress.js';
import type { ErasureRepository } from '../erasure/erasure-repository.js';
import {
  addList,
  addUser,
  countRequested,
  namedRequest,
  openReference,
} from '../erasure/erasure-requests.js';
import type { ErasureRequests } from '../storage/storage.js';
import type {
  ErasureProgress,
  ErasureReceipt,
  ErasureRequest,
  ErasureStatus,
  RequestedErasure,
} from '../erasure/erasure.js';
import { dryRun, uidItems, uidsOf, type ErasureDryRun, type UidSource } from '../erasure/uid-source.js';

/** Many users to be erased under one reference. */
export interface BulkErasureRequest extends Omit<ErasureRequest, 'uid' | 'reference'> {
  /** The name of this erasure, by which it is requested again; see `ErasureRequest`. */
  readonly reference: string;
  /** Ends the reading early. The users that were read stay stored, and none of them is erased. */
  readonly signal?: AbortSignal | undefined;
}

/** The options of a dry run. */
export interface DryRunOptions {
  /** Counts as `alreadyRequested` what is requested in this mode only. Default: in both. */
  readonly mode?: ErasureMode | undefined;
  /** Ends the reading early. */
  readonly signal?: AbortSignal | undefined;
}

/** @internal */
export interface ErasureParts {
  readonly repository: ErasureRepository;
  readonly calls: Pick<ErasureCalls, 'allUsers'>;
  readonly pace: JobPace;
  readonly shutdownSignal: AbortSignal;
  readonly emit: Emit;
}

/**
 * Durable, idempotent erasures with receipts. An accepted request is stored and executed in the background: log out,
 * then anonymize or delete (service-interface.md, sections 4.2 and 4.3). Injectable.
 *
 * Every method rejects with a {@link StorageError} when the storage cannot be reached. After a rejected `request` or
 * `requestMany` it is unknown whether the erasure was stored: the error has its `reference`, also when the caller gave
 * none. See `status(reference)`, or repeat the call.
 */
export class DebateSpaceErasures {
  readonly #parts: ErasureParts;
  readonly #repository: ErasureRepository;
  readonly #control: ErasureControl;

  /** @internal */
  constructor(parts: ErasureParts) {
    this.#parts = parts;
    this.#repository = parts.repository;
    this.#control = new ErasureControl(parts.repository, parts.emit);
  }

  /**
   * Requests one user's erasure; resolves when it is durable. While the same user is to be erased in the same mode,
   * `alreadyRequested` says so: without a `reference` the answer is the status of the earlier request, and with another one
   * the service is asked for each, of which the second does not find the user.
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
   * @throws {@link ErasureError} when the reference stands for something else
   */
  async request(request: ErasureRequest): Promise<RequestedErasure> {
    const { transaction } = request;
    const uid = acceptedUid(namedUid(request.uid), 'requestErasure');
    const named = namedRequest({ ...request, reference: request.reference ?? randomUUID() });
    const repository = this.#repository;
    const requests = repository.within(transaction);
    let { reference } = named;
    try {
      const earlier = await openReference(repository, requests, uid, named.mode);
      const alreadyRequested = earlier !== undefined;
      if (alreadyRequested && request.reference === undefined) {
        reference = earlier;
        return { ...(await repository.status(earlier, requests)), alreadyRequested };
      }
      const isChange = await addUser(repository, requests, named, uid);
      return { ...(await this.#requested(requests, reference, isChange)), alreadyRequested };
    } catch (error) {
      throw withReference(error, reference);
    }
  }

  /**
   * Requests the erasure of many users, in commits of 250; resolves when all of them are durable, and only then the first
   * is carried out. When it rejects or the process dies before, what was read is kept, marked as not `complete`: the same
   * call continues from there, `cancel` gives it up. Users that the reference has already are skipped, so calling it again
   * is safe; once the list is complete, others need a reference of their own.
   *
   * With a `transaction` as in {@link DebateSpaceErasures.request}: when it rejects, the host must roll back. Two such transactions that have
   * users in common may deadlock; the host then repeats one of them (40P01).
   *
   * @param source uids, read as they are needed, and never held. Parse text first: docs/erasure-recipes.md
   * @throws {@link InvalidArgumentError} for an item that is no uid, with its number; when the list has no user, and then
   * nothing is stored; when the storage has no `transaction`
   * @throws {@link ErasureError} when the reference stands for something else
   * @throws `AbortError`
   */
  async requestMany(source: UidSource, request: BulkErasureRequest): Promise<ErasureStatus> {
    const named = namedRequest(request);
    const requests = this.#repository.within(request.transaction);
    const uids = uidsOf(source, request.signal);
    request.signal?.throwIfAborted();
    try {
      const isChange = await addList(this.#repository, requests, named, uids);
      return await this.#requested(requests, named.reference, isChange);
    } catch (error) {
      throw withReference(error, named.reference);
    }
  }

  /**
   * Counts without a change what `requestMany` would find: how many uids the source has, and how many of them the service knows. Nothing is
   * stored, and nothing sent but the questions for the user list, page by page. The distinct uids are kept in memory until
   * it resolves: about 85 MB for a million UUIDs.
   * @throws {@link InvalidArgumentError} when the source gives no uids but text or bytes
   * @throws {@link DebateSpaceRequestError} when the user list cannot be read
   */
  async dryRun(source: UidSource, options: DryRunOptions = {}): Promise<ErasureDryRun> {
    const { mode, signal } = options;
    const modes = mode === undefined ? (['anonymize', 'delete'] as const) : [mode];
    return dryRun(uidItems(source, signal), this.#parts.calls.allUsers(signal), (uids) =>
      countRequested(this.#repository, uids, modes),
    );
  }

  /** @throws {@link ErasureError} when there is no such reference */
  async status(reference: string): Promise<ErasureStatus> {
    return this.#repository.status(reference);
  }

  /** All references that are not finished or whose receipts are kept, the newest first. */
  list(): AsyncIterable<ErasureStatus> {
    return this.#repository.list();
  }

  /**
   * The progress, immediately, about every second and whenever it changes, whichever instance does the work; a paused
   * reference is waited for.
   * Completes with the work – when all users are finished or parked – or with the app.
   */
  progress(reference: string): Observable<ErasureProgress> {
    const { repository, pace, shutdownSignal } = this.#parts;
    return watchProgress(repository, reference, pace, shutdownSignal);
  }

  /**
   * The receipts of a reference, in no particular order, a page at a time.
   * @throws {@link ErasureError} from the loop
   */
  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    await this.#repository.status(reference);
    yield* this.#repository.receipts(reference);
  }

  /**
   * The receipts of one user: that, when and how the service erased the uid.
   * @throws {@link InvalidUidError}
   */
  receiptsOf(uid: string): AsyncIterable<ErasureReceipt> {
    return this.#repository.receiptsOf(acceptedUid(namedUid(uid), 'requestErasure'));
  }

  /** Begins no further one, on no instance; those under way are finished. A finished reference stays so. @throws {@link ErasureError} */
  pause(reference: string): Promise<ErasureStatus> {
    return this.#control.pause(reference);
  }

  /** Continues after a pause. Parked users stay parked; see {@link retry}. @throws {@link ErasureError} */
  resume(reference: string): Promise<ErasureStatus> {
    return this.#control.resume(reference);
  }

  /**
   * Tries the parked users of a reference again: those that failed for `erasure.giveUpAfterMs`, and those whose uids
   * no storage key opened. A paused reference stays paused.
   * @throws {@link ErasureError}
   */
  retry(reference: string): Promise<ErasureStatus> {
    return this.#control.retry(reference);
  }

  /**
   * Gives up the users of whom nothing was sent, and the parked ones; what the service may have done already is continued
   * until its receipt.
   * @throws {@link ErasureError}
   */
  cancel(reference: string): Promise<ErasureStatus> {
    return this.#control.cancel(reference);
  }

  /** @param isChange whether anything was requested that was not requested before */
  async #requested(requests: ErasureRequests, reference: string, isChange: boolean): Promise<ErasureStatus> {
    const status = await this.#repository.status(reference, requests);
    if (!isChange || requests !== this.#repository.storage) return status; // whether the host commits is not known
    const { mode, requestedBy, total } = status;
    this.#parts.emit({ type: 'erasure-requested', reference, mode, requestedBy, total });
    return status;
  }
}

/** A `StorageError` names the erasure, so that the caller can look whether it was stored. */
function withReference(error: unknown, reference: string): unknown {
  if (!(error instanceof StorageError)) return error;
  const { problem, hint, unreachable } = error;
  return new StorageError(`Erasure ${reference}: ${problem}`, hint, { unreachable, reference });
}
