import { randomUUID } from 'node:crypto';
import { acceptedUid, namedUid } from '../uid-rule.js';
import type { Observable } from 'rxjs';
import type { Emit, ErasureMode } from '../events.js';
import { StorageError } from '../errors.js';
import { watchProgress, type JobPace } from '../erasure/erasure-progress.js';
import type { ErasureRepository } from '../erasure/erasure-repository.js';
import {
  addList,
  addUser,
  countRequested,
  namedRequest,
  openReference,
} from '../erasure/erasure-requests.js';
import type {
  ErasureProgress,
  ErasureReceipt,
  ErasureRequest,
  ErasureStatus,
  RequestedErasure,
} from '../erasure/erasure.js';
import { dryRun, uidItems, uidsOf, type ErasureDryRun, type UidSource } from '../erasure/uid-source.js';
import { finishedEvent } from '../erasure/erasure-status.js';
import type { UsersApi } from '../service/calls/users-api.js';

/** Many users to be erased under one reference. Each other field of an `ErasureRequest` is one of this, too. */
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

const USERS_PER_PAGE = 100;

/** @internal */
export interface ErasureParts {
  readonly repository: ErasureRepository;
  readonly users: Pick<UsersApi, 'walk'>;
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
 *
 * @example
 * const { reference } = await erasures.request({ uid: 'alice', mode: 'anonymize', requestedBy: 'the user' });
 * const { state } = await erasures.status(reference);
 */
export class DebateSpaceErasures {
  readonly #parts: ErasureParts;
  readonly #repository: ErasureRepository;

  /** @internal */
  constructor(parts: ErasureParts) {
    this.#parts = parts;
    this.#repository = parts.repository;
  }

  /**
   * Requests one user's erasure; resolves when it is durable. `alreadyRequested` is true while an earlier request for the same
   * user and mode is not finished. Without a `reference` the result is then the status of the earlier request; with another
   * `reference` both are executed, and the second does not find the user.
   *
   * With a `transaction` the erasure exists if and only if the host commits. It rejects with the
   * errors of the host's connection: repeat the transaction on 40001 and 40P01 as always. No event `erasure-requested` is
   * emitted, because the plugin does not see the commit. A lane finds the erasure within seconds after it.
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
      const status = await repository.status(reference, requests);
      if (isChange && !transaction) this.#emitRequested(status);
      return { ...status, alreadyRequested };
    } catch (error) {
      throw withReference(error, reference);
    }
  }

  /**
   * Requests the erasure of many users, in commits of 250; resolves when all of them are durable. Nobody is erased before.
   * When it rejects or the process dies, the users that were read stay stored, and the list is not `complete`: repeat the
   * call to continue, or `cancel` the reference. Users whom the reference already has are skipped. A complete list takes no
   * more users: give them another reference.
   *
   * `transaction`: see {@link DebateSpaceErasures.request}. When the call rejects, the host must roll back. Two such
   * transactions that have users in common may deadlock; the host then repeats one of them (40P01).
   *
   * @param source uids, read one by one. Parse text first: docs/erasure-recipes.md
   * @throws {@link InvalidArgumentError} for an item that is no uid, with its number; when the list has no user, and then
   * nothing is stored; when the storage has no `transaction`
   * @throws {@link ErasureError} when the reference stands for something else
   * @throws `AbortError`
   */
  async requestMany(source: UidSource, request: BulkErasureRequest): Promise<ErasureStatus> {
    const named = namedRequest(request);
    const { transaction } = request;
    const requests = this.#repository.within(transaction);
    const uids = uidsOf(source, request.signal);
    request.signal?.throwIfAborted();
    try {
      const isChange = await addList(this.#repository, requests, named, uids);
      const status = await this.#repository.status(named.reference, requests);
      if (isChange && !transaction) this.#emitRequested(status);
      return status;
    } catch (error) {
      throw withReference(error, named.reference);
    }
  }

  /**
   * Counts how many uids the source has, and for how many of them the service lists a user. Stores nothing, and sends requests
   * for the user list only. Keeps the distinct uids in memory until it resolves: about 85 MB for a million UUIDs.
   * @throws {@link InvalidArgumentError} when the source gives no uids but text or bytes
   * @throws {@link DebateSpaceRequestError} when the user list cannot be read
   */
  async dryRun(source: UidSource, options: DryRunOptions = {}): Promise<ErasureDryRun> {
    const { mode, signal } = options;
    const modes = mode === undefined ? (['anonymize', 'delete'] as const) : [mode];
    return dryRun(
      uidItems(source, signal),
      this.#parts.users.walk({ perPage: USERS_PER_PAGE }, signal),
      (uids) => countRequested(this.#repository, uids, modes),
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
   * Emits the progress at once, about every second, and whenever it changes, whichever instance does the work; also while the
   * reference is paused. Completes when all users are finished or parked, or when the app shuts down.
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

  /** Starts no more erasures of this reference, on any instance. Running ones continue. @throws {@link ErasureError} */
  pause(reference: string): Promise<ErasureStatus> {
    return this.#setPaused(reference, true);
  }

  /** Continues after a pause. Parked users stay parked; see {@link retry}. @throws {@link ErasureError} */
  resume(reference: string): Promise<ErasureStatus> {
    return this.#setPaused(reference, false);
  }

  /**
   * Retries the parked users of a reference: those who failed for `erasure.giveUpAfterMs`, and those whose uids no storage key
   * opened. A paused reference stays paused.
   * @throws {@link ErasureError}
   */
  async retry(reference: string): Promise<ErasureStatus> {
    await this.#repository.status(reference); // or it rejects
    await this.#repository.retryParked(reference);
    return this.#repository.status(reference);
  }

  /**
   * Discards the users for whom no request was sent, and the parked ones. A user whom the service may have erased already is
   * retried until there is a receipt.
   * @throws {@link ErasureError}
   */
  async cancel(reference: string): Promise<ErasureStatus> {
    const before = await this.#repository.status(reference);
    if (before.finishedAt) return before; // the events of its end were emitted then
    const finished = await this.#repository.cancel(reference);
    const status = await this.#repository.status(reference);
    const { emit } = this.#parts;
    emit({ type: 'erasure-canceled', reference, mode: status.mode, count: status.canceled });
    if (finished) emit(finishedEvent(finished));
    return status;
  }

  async #setPaused(reference: string, paused: boolean): Promise<ErasureStatus> {
    const isChange = await this.#repository.setPaused(reference, paused);
    const status = await this.#repository.status(reference);
    const { mode } = status;
    if (isChange) this.#parts.emit({ type: paused ? 'erasure-paused' : 'erasure-resumed', reference, mode });
    return status;
  }

  #emitRequested({ reference, mode, requestedBy, total }: ErasureStatus): void {
    this.#parts.emit({ type: 'erasure-requested', reference, mode, requestedBy, total });
  }
}

/** A `StorageError` names the erasure, so that the caller can look whether it was stored. */
function withReference(error: unknown, reference: string): unknown {
  if (!(error instanceof StorageError)) return error;
  const { problem, hint, unreachable } = error;
  return new StorageError(`Erasure ${reference}: ${problem}`, hint, { unreachable, reference });
}
