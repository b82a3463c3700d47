import { LRUCache } from 'lru-cache';
import type { Containment } from '../../async/containment.js';
import type { SessionRecord } from '../session-options.js';
import { validateUid } from '../../uid.js';
import { timeoutOrThrow, withTimeout } from '../../async/with-timeout.js';
import { expiryOf } from './session-expiry.js';
import type { SessionRegistry, SessionRemoval } from './session-registry.js';

/** What it takes to know every live session, over all instances. */
export interface SessionIndexing {
  readonly registry: SessionRegistry;
  /** Whether an end counts only if the user has no other live session. */
  readonly lastOnly: boolean;
  /** How often to look for sessions that have expired; `undefined`: never. */
  readonly sweepMs: number | undefined;
}

interface Written {
  readonly uid: string;
  readonly expiresAt: number;
}

const MAX_REMEMBERED = 10_000;
/** A registry that lost its sessions learns of those in use after this time. */
const REMEMBER_MS = 10 * 60_000;
/** A session that is used with each click is written once in this time. */
const WRITE_EVERY_MS = 60_000;
/** Neither a registry nor a store that does not answer may stop what waits for it. */
export const ANSWER_WITHIN_MS = 5_000;
/** A logout that waits for the registry leaves a shutdown the time to deliver it. */
const DECIDE_WITHIN_MS = 1_000;

/** Writes the sessions of this process to the registry that all instances share. Never throws. */
export class RegistryWriter {
  readonly #indexing: SessionIndexing;
  readonly #containment: Containment;
  readonly #written = new LRUCache<string, Written>({ max: MAX_REMEMBERED, ttl: REMEMBER_MS });
  /** The uids of ended sessions that the registry still counts as live, and so would hide a last one. */
  readonly #unremoved = new LRUCache<string, string>({ max: MAX_REMEMBERED });
  #isFlushing = false;

  constructor(indexing: SessionIndexing, containment: Containment) {
    this.#indexing = indexing;
    this.#containment = containment;
  }

  /** A request has loaded the session. The expiry that it was stored with may be older than its last `touch`. */
  loaded(sid: string, uid: string, session: SessionRecord): void {
    const written = this.#written.get(sid);
    if (written?.uid === uid && expiryOf(session, Date.now()) <= written.expiresAt)
      this.#unremoved.delete(sid);
    else this.saved(sid, uid, session);
  }

  /** The session was saved with this user: if it had ended before, it is not to be removed any more. */
  saved(sid: string, uid: string, session: SessionRecord): void {
    this.#unremoved.delete(sid);
    this.#write('put', sid, uid, session);
  }

  /** The session was touched – by a request that may not have heard of its end. */
  touched(sid: string, uid: string, session: SessionRecord): void {
    this.#write('renew', sid, uid, session);
  }

  /** The session has no user: the next user of the session is written immediately. */
  anonymous(sid: string): void {
    this.#written.delete(sid);
  }

  /** Whether an end counts only if the user has no other live session. */
  get lastOnly(): boolean {
    return this.#indexing.lastOnly;
  }

  /** @returns whether it was the last session of its user; it was when the registry does not answer */
  async ended(sid: string, uid: string): Promise<boolean> {
    const removal = await withTimeout(this.forget(sid, uid), DECIDE_WITHIN_MS, undefined);
    return !removal?.others;
  }

  /** The session has ended, or the user has gone on with another. */
  async forget(sid: string, uid: string): Promise<SessionRemoval | undefined> {
    this.#written.delete(sid);
    const earlier = [...this.#unremoved].filter(([, user]) => user === uid);
    await Promise.all(earlier.map(([each]) => this.#remove(each, uid)));
    const removal = await this.#remove(sid, uid);
    if (removal) void this.#flush();
    return removal;
  }

  async #remove(sid: string, uid: string): Promise<SessionRemoval | undefined> {
    const removal = await this.#contained(() => this.#indexing.registry.remove({ sid, uid }));
    if (removal) this.#unremoved.delete(sid);
    else this.#unremoved.set(sid, uid);
    return removal;
  }

  /** The registry answers again: removes what it could not remove before. */
  async #flush(): Promise<void> {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    for (const [sid, uid] of [...this.#unremoved]) {
      if (this.#unremoved.get(sid) === uid && !(await this.#remove(sid, uid))) break;
    }
    this.#isFlushing = false;
  }

  #write(method: 'put' | 'renew', sid: string, uid: string, session: SessionRecord): void {
    const expiresAt = expiryOf(session, Date.now());
    const written = this.#written.get(sid);
    if (written?.uid === uid && Math.abs(expiresAt - written.expiresAt) < WRITE_EVERY_MS) return;
    if (validateUid(uid) !== undefined) return;
    this.#written.set(sid, { uid, expiresAt });
    const write = async (): Promise<true> => {
      await this.#indexing.registry[method]({ sid, uid }, expiresAt);
      return true;
    };
    void this.#contained(write).then((isDone) => {
      if (isDone) void this.#flush();
      else this.#written.delete(sid); // tried again with the next request
    });
  }

  async #contained<T>(work: () => Promise<T>): Promise<T | undefined> {
    const answer = (): Promise<T> => timeoutOrThrow(work(), ANSWER_WITHIN_MS);
    return this.#containment.run<Promise<T | undefined>>('session registry', answer, undefined);
  }
}
