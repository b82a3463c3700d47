import { randomUUID } from 'node:crypto';
import type { Observable } from 'rxjs';
import type { Emit } from './debate-space-event.js';
import { StorageError } from './errors.js';
import { askedErasures } from './erasure/asked-erasures.js';
import { dryRun, type ErasureDryRun } from './erasure/dry-run.js';
import type {
  ErasureMode,
  ErasureProgress,
  ErasureReceipt,
  ErasureRequest,
  ErasureStatus,
  RequestedErasure,
} from './erasure/erasure.js';
import { AT_ONCE, type AskedErasures, type ErasureLedger } from './erasure/erasure-ledger.js';
import { watchProgress } from './erasure/erasure-progress.js';
import type { ErasureControl } from './erasure/erasure-control.js';
import type { ErasureReceipts } from './erasure/erasure-receipts.js';
import type { ErasureRecords } from './erasure/erasure-records.js';
import { untilAborted } from './erasure/until-aborted.js';
import { uidItems, uidsOf, type UidSource } from './erasure/uid-source.js';
import { assertUid } from './remote/uid.js';
import type { DebateSpaceUser } from './remote/user-page.js';

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
  readonly ledger: ErasureLedger;
  readonly control: ErasureControl;
  readonly receipts: ErasureReceipts;
  readonly records: ErasureRecords;
  readonly users: (signal: AbortSignal | undefined) => AsyncIterable<DebateSpaceUser>;
  /** Aborted when the app shuts down. */
  readonly closing: AbortSignal;
  /** Whether what is asked for outlives the process. */
  readonly durable: boolean;
  readonly emit: Emit;
}

/**
 * Erasures that happen for certain, once, and can be shown: asked for, they are durable in the outbox, and carried out
 * from there – the logout first, then the operation of service-interface.md, sections 4.2 and 4.3. Injectable.
 *
 * Every method rejects with a `StorageError` when the storage cannot be reached.
 */
export class DebateSpaceErasures {
  readonly #parts: ErasuresParts | undefined;
  #warned = false;

  /** @param parts none for an outbox engine that keeps no records */
  constructor(parts: ErasuresParts | undefined) {
    this.#parts = parts;
  }

  /**
   * Asks for one user's erasure; resolves when it is durable. The same user in the same mode is erased once, however often
   * it is asked for: `alreadyUnderWay` tells, and without a `reference` the answer is how the earlier request stands.
   * @throws {InvalidUidError}, {InvalidArgumentError} before anything is stored; {ErasureError} when the reference stands
   *   for something else
   */
  async request(request: ErasureRequest): Promise<RequestedErasure> {
    const { ledger } = this.#there();
    this.#warnOfMemory();
    const { uid } = request;
    assertUid(uid, 'requestErasure');
    const asked = askedErasures({ ...request, reference: request.reference ?? randomUUID() });
    const earlier = request.reference === undefined ? await ledger.underWay(uid, asked.mode) : undefined;
    if (earlier !== undefined) return { ...(await ledger.status(earlier)), alreadyUnderWay: true };
    const alreadyUnderWay = await ledger.add(asked, uid);
    return { ...(await this.#requested(asked)), alreadyUnderWay };
  }

  /**
   * Asks for the erasure of many; resolves when all of them are durable, and only then the first is carried out. When it
   * rejects or the process dies before, what was read is kept, marked as not `complete`: the same call goes on from there,
   * `cancel` gives it up. Users that the reference has already are skipped, so calling it again is safe; once the list is
   * complete, others need a reference of their own.
   * @param source uids, read as they are needed, and never held. Text has to be parsed first: docs/gdpr.md
   * @throws {InvalidArgumentError} for an item that is no uid, with its number; {ErasureError} when the reference stands for
   *   something else; `AbortError`
   */
  async requestMany(source: UidSource, request: BulkErasureRequest): Promise<ErasureStatus> {
    const { ledger } = this.#there();
    this.#warnOfMemory();
    const asked = askedErasures(request);
    const { signal } = request;
    const all = untilAborted(uidsOf(source), signal);
    signal?.throwIfAborted();
    const reader = randomUUID();
    await ledger.beginList(asked, reader);
    for await (const uids of chunksOf(all)) await ledger.addSome(asked, reader, uids);
    await ledger.endList(asked, reader);
    return this.#requested(asked);
  }

  /**
   * What `requestMany` would meet: how many uids the source has, and how many of them the service knows. Nothing is
   * stored, and nothing sent but the questions for the user list, page by page. The distinct uids are kept in memory until
   * it resolves: about 85 MB for a million UUIDs.
   * @throws {InvalidArgumentError} when the source gives no uids but text or bytes; a `DebateSpaceRequestError`
   */
  async dryRun(source: UidSource, options: DryRunOptions = {}): Promise<ErasureDryRun> {
    const { ledger, users } = this.#there();
    const modes = options.mode === undefined ? (['anonymize', 'delete'] as const) : [options.mode];
    const items = untilAborted(uidItems(source), options.signal);
    return dryRun(items, users(options.signal), (uids) => ledger.countUnderWay(uids, modes));
  }

  /** @throws {ErasureError} when there is no such reference */
  async status(reference: string): Promise<ErasureStatus> {
    return this.#there().ledger.status(reference);
  }

  /** All references that are not over or whose receipts are kept, the newest first. */
  list(): AsyncIterable<ErasureStatus> {
    return this.#there().ledger.list();
  }

  /**
   * How the work goes, at once and whenever it changes, whichever instance does it; a paused one is waited for. Ends with
   * the work – when all are over or given up – or with the app.
   */
  progress(reference: string): Observable<ErasureProgress> {
    const { ledger, records, closing } = this.#there();
    return watchProgress(ledger, records, reference, closing);
  }

  /** The receipts of a reference, in no particular order, a few at a time. @throws {ErasureError} from the loop */
  async *receipts(reference: string): AsyncGenerator<ErasureReceipt> {
    const { ledger, receipts } = this.#there();
    await ledger.status(reference);
    yield* receipts.of(reference);
  }

  /**
   * The receipts of one user: that, when and how the service erased the uid.
   * @throws {InvalidUidError}
   */
  receiptsOf(uid: string): AsyncIterable<ErasureReceipt> {
    assertUid(uid, 'requestErasure');
    return this.#there().receipts.ofUser(uid);
  }

  /** Begins no further one, on no instance; those under way come to their end. @throws {ErasureError} */
  async pause(reference: string): Promise<ErasureStatus> {
    const status = await this.#there().control.pause(reference);
    this.#there().emit({ type: 'erasure-paused', reference, mode: status.mode });
    return status;
  }

  /** Goes on after a pause, and tries those again that were given up. @throws {ErasureError} */
  async resume(reference: string): Promise<ErasureStatus> {
    const status = await this.#there().control.resume(reference);
    this.#there().emit({ type: 'erasure-resumed', reference, mode: status.mode });
    return status;
  }

  /**
   * Gives up those of which nothing was sent; what the service may have done already goes on to its receipt.
   * @throws {ErasureError}
   */
  async cancel(reference: string): Promise<ErasureStatus> {
    const { control, emit } = this.#there();
    const status = await control.cancel(reference);
    emit({ type: 'erasure-cancelled', reference, mode: status.mode, count: status.cancelled });
    if (status.finishedAt) this.#finished(status);
    return status;
  }

  async #requested({ reference }: AskedErasures): Promise<ErasureStatus> {
    const { ledger, emit } = this.#there();
    const status = await ledger.status(reference);
    const { mode, requestedBy, total } = status;
    emit({ type: 'erasure-requested', reference, mode, requestedBy, total });
    if (total === 0) this.#finished(status);
    return status;
  }

  #finished({ reference, mode, total, done, notFound, vetoed, cancelled }: ErasureStatus): void {
    this.#there().emit({ type: 'erasure-finished', reference, mode, total, done, notFound, vetoed, cancelled }); // prettier-ignore
  }

  #warnOfMemory(): void {
    const { durable, emit } = this.#there();
    if (!durable && !this.#warned) emit({ type: 'erasures-in-memory' });
    this.#warned = true;
  }

  #there(): ErasuresParts {
    if (this.#parts) return this.#parts;
    throw new StorageError('This outbox keeps no erasures: its engine has no `records`; use another engine');
  }
}

/** As many as are noted in one change. */
async function* chunksOf(uids: AsyncIterable<string>): AsyncGenerator<readonly string[]> {
  let chunk: string[] = [];
  for await (const uid of uids) {
    chunk.push(uid);
    if (chunk.length < AT_ONCE) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}
