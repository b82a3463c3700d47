import { LRUCache } from 'lru-cache';
import type { Containment } from '../containment.js';
import type { SessionRecord } from '../debate-space.options.js';
import { timeoutOrThrow, withTimeout } from '../with-timeout.js';
import { uidProblem } from '../remote/uid.js';
import { expiryOf } from './session-expiry.js';
import type { SessionName, SessionRegistry, SessionRemoval } from './session-registry.js';
import type { SessionSeal } from './session-seal.js';

interface Noted {
  readonly uid: string;
  readonly expiresAt: number;
}

type Write = 'put' | 'renew';

/** A session that has ended, with the names that it may be registered under. */
interface EndedSession {
  readonly name: SessionName;
  readonly former: readonly SessionName[];
}

/** What it takes to know every live session, over all instances. */
export interface SessionIndexing {
  readonly registry: SessionRegistry;
  readonly seal: SessionSeal;
  /** Whether an end counts only if the user has no other live session. */
  readonly lastOnly: boolean;
  /** How often to look for sessions that have run out; `undefined`: never. */
  readonly sweepMs: number | undefined;
}

interface IndexedSessionsOptions extends SessionIndexing {
  readonly containment: Containment;
}

const MOST_REMEMBERED = 10_000;
/** A registry that lost its sessions learns of those in use after so long. */
const REMEMBER_MS = 10 * 60_000;
/** A session that is used with each click is written once in so long. */
const NOTE_EVERY_MS = 60_000;
const ANSWER_WITHIN_MS = 5_000;
/** A logout that waits for the registry leaves a shutdown the time to deliver it. */
const DECIDE_WITHIN_MS = 1_000;

/** The sessions of this process in the registry that all instances share. Nothing of it ever throws. */
export class IndexedSessions {
  readonly #options: IndexedSessionsOptions;
  readonly #noted = new LRUCache<string, Noted>({ max: MOST_REMEMBERED, ttl: REMEMBER_MS });
  /** What the registry has not heard of, by hash: ended sessions that it would count as live, and so hide a last one. */
  readonly #owed = new LRUCache<string, EndedSession>({ max: MOST_REMEMBERED });
  #settling = false;

  constructor(options: IndexedSessionsOptions) {
    this.#options = options;
  }

  /** A request has loaded the session. The expiry that it was stored with may be older than its last `touch`. */
  loaded(sid: string, uid: string, session: SessionRecord): void {
    const noted = this.#noted.get(sid);
    if (noted?.uid === uid && expiryOf(session, Date.now()) <= noted.expiresAt) this.#lives(sid);
    else this.saved(sid, uid, session);
  }

  /** The session was saved with this user. */
  saved(sid: string, uid: string, session: SessionRecord): void {
    this.#lives(sid);
    this.#note(sid, uid, session, 'put');
  }

  /** The session was touched – by a request that may not have heard of its end. */
  touched(sid: string, uid: string, session: SessionRecord): void {
    this.#note(sid, uid, session, 'renew');
  }

  /** The session has no user: whoever logs in to it next is noted at once. */
  anonymous(sid: string): void {
    this.#noted.delete(sid);
  }

  /**
   * @returns whether the end of this session is to be told. It is when the registry does not answer, and nobody waits for
   * that when each end is told anyway
   */
  async ended(sid: string, uid: string): Promise<boolean> {
    const forgotten = this.forget(sid, uid);
    if (!this.#options.lastOnly) return true;
    const removal = await withTimeout(forgotten, DECIDE_WITHIN_MS, undefined);
    return !removal?.others;
  }

  /** The session is no more: it has ended, or the user has gone on with another. */
  async forget(sid: string, uid: string): Promise<SessionRemoval | undefined> {
    this.#noted.delete(sid);
    const { seal } = this.#options;
    const ended = { name: seal.name(sid, uid), former: seal.formerNames(sid, uid) };
    const ofUser = [...this.#owed.values()].filter(({ name }) => name.uidHash === ended.name.uidHash);
    await Promise.all(ofUser.map((earlier) => this.#remove(earlier)));
    const removal = await this.#remove(ended);
    if (removal) void this.#settle();
    return removal;
  }

  async #remove(ended: EndedSession): Promise<SessionRemoval | undefined> {
    const { name, former } = ended;
    const removal = await this.#contained(() => this.#options.registry.remove(name, former));
    if (removal) this.#owed.delete(name.hash);
    else this.#owed.set(name.hash, ended);
    return removal;
  }

  /** The registry answers again: tells it of what it has missed. */
  async #settle(): Promise<void> {
    if (this.#settling) return;
    this.#settling = true;
    for (const [hash, ended] of [...this.#owed]) {
      if (this.#owed.get(hash) === ended && !(await this.#remove(ended))) break;
    }
    this.#settling = false;
  }

  /** Whoever had it end before: it is not to be removed any more. */
  #lives(sid: string): void {
    if (this.#owed.size > 0) this.#owed.delete(this.#options.seal.name(sid, '').hash);
  }

  #note(sid: string, uid: string, session: SessionRecord, write: Write): void {
    const expiresAt = expiryOf(session, Date.now());
    const noted = this.#noted.get(sid);
    if (noted?.uid === uid && Math.abs(expiresAt - noted.expiresAt) < NOTE_EVERY_MS) return;
    if (uidProblem(uid) !== undefined) return;
    this.#noted.set(sid, { uid, expiresAt });
    void this.#written(write, sid, uid, expiresAt);
  }

  async #written(write: Write, sid: string, uid: string, expiresAt: number): Promise<void> {
    const { registry, seal } = this.#options;
    const done = await this.#contained(async () => {
      await registry[write]({ ...seal.seal(sid, uid), expiresAt }, seal.formerNames(sid, uid));
      return true;
    });
    if (done) void this.#settle();
    else this.#noted.delete(sid); // tried again with the next request
  }

  async #contained<T>(work: () => T | PromiseLike<T>): Promise<T | undefined> {
    const answer = async (): Promise<T> => timeoutOrThrow(work(), ANSWER_WITHIN_MS);
    return this.#options.containment.run<Promise<T | undefined>>('session registry', answer, undefined);
  }
}
