import { randomUUID } from 'node:crypto';
import { namedUid } from '../../uid-rule.js';
import type { SessionEnd } from '../../session-end/session-end.js';
import { Containment } from '../../async/containment.js';
import { isPromise, type MaybePromise } from '../../async/maybe-promise.js';
import { AbortedError } from '../../errors.js';
import type { Emit, EndReason } from '../../events.js';
import type { LogoutEntry } from '../logout.js';
import type { FallbackQueue } from './fallback-queue.js';

export type EndQueue = Pick<FallbackQueue, 'add'>;

/** So many ends of one turn of the event loop are stored at once; more of them, such as those of a job, together. */
const DIRECT = 4;
/** How many are stored in one commit, and in one turn of the event loop. */
const BATCH = 100;

/** Stores the logouts of sessions that have ended. Only `request` rejects. */
export class LogoutRecorder {
  readonly #queue: EndQueue;
  readonly #emit: Emit;
  readonly #containment: Containment;
  #isClosed = false;
  /** How many ends this turn of the event loop has had. */
  #inTurn = 0;
  #waiting: LogoutEntry[] = [];
  #turn: Promise<unknown> | undefined;

  constructor(queue: EndQueue, emit: Emit) {
    this.#queue = queue;
    this.#emit = emit;
    this.#containment = new Containment(emit);
  }

  /** Stores the logout. @returns resolves when it is stored; a promise only when the storage needs one */
  record(end: SessionEnd): MaybePromise<void> {
    const entry = this.#entryOf(end);
    if (!entry) return undefined;
    this.#turn ??= this.#untilNextTurn();
    this.#inTurn += 1;
    if (this.#inTurn > DIRECT) {
      this.#waiting.push(entry);
      return this.#turn.then(() => undefined);
    }
    const added = this.#contained(() => this.#queue.add([entry]));
    return isPromise(added) ? Promise.resolve(added).then(() => undefined) : undefined;
  }

  /** From now on only ends of sessions are recorded. */
  close(): void {
    this.#isClosed = true;
  }

  /** A logout that the host requests; resolves when it is stored. */
  async request(uid: string): Promise<void> {
    if (this.#isClosed) {
      const details = { operation: 'logoutUser', attempts: 0, outcome: 'not-sent', retryable: true } as const;
      throw new AbortedError('the app is shutting down', details);
    }
    const entry = newEntry(uid, 'requested', Date.now());
    await this.#queue.add([entry]);
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason: entry.reason });
  }

  async #untilNextTurn(): Promise<void> {
    await new Promise(setImmediate);
    const entries = this.#waiting;
    this.#waiting = [];
    this.#inTurn = 0;
    this.#turn = undefined;
    while (entries.length > 0) {
      const batch = entries.splice(0, BATCH);
      await this.#contained(() => this.#queue.add(batch));
      if (entries.length > 0) await new Promise(setImmediate);
    }
  }

  /** @returns `undefined` when the service cannot know such a uid */
  #entryOf({ uid: reported, reason, endedAt }: SessionEnd): LogoutEntry | undefined {
    const uid = namedUid(reported);
    if (typeof uid !== 'string') {
      this.#emit({ type: 'fault', where: `the uid ${uid.problem}`, error: 'InvalidUidError' });
      return undefined;
    }
    const entry = newEntry(uid, reason, endedAt.getTime());
    this.#emit({ type: 'session-ended', id: entry.id, uid, reason });
    return entry;
  }

  #contained(work: () => MaybePromise<void>): MaybePromise<unknown> {
    return this.#containment.run<unknown>('outbox', work, undefined);
  }
}

/** The id begins with the moment, so that ids sort by age. */
function newEntry(uid: string, reason: EndReason, endedAt: number): LogoutEntry {
  return { id: `${String(endedAt).padStart(15, '0')}-${randomUUID()}`, uid, reason, endedAt };
}
