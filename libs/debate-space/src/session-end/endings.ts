import { LRUCache } from 'lru-cache';
import type { EndReason } from '../debate-space-event.js';
import { withTimeout } from '../with-timeout.js';
import type { EndRecorder, HeldEnd } from './end-recorder.js';
import { OpenWork } from './open-work.js';
import type { IndexedSessions } from './indexed-sessions.js';
import type { SessionRequest } from './session-request.js';
import { hasEnded, type VerdictContext, type EndingCall, type PossibleEnd } from './verdict.js';

type MaybePromise<T> = T | PromiseLike<T>;

/** The requests that have to do with an end. */
export type Parties = Partial<Readonly<Record<'actors' | 'holders', readonly SessionRequest[]>>>;

interface Ending extends PossibleEnd {
  readonly actors: Set<SessionRequest>;
  readonly holders: Set<SessionRequest>;
  readonly calls: EndingCall[];
  savedBack: boolean;
  /** Whether a request that takes part has saved the session with its user again: then others may save it as well. */
  isKept: boolean;
  readonly held: MaybePromise<HeldEnd | undefined>;
}

const MOST_REMEMBERED = 10_000;
const ASK_TIMEOUT_MS = 5_000;

/** The sessions that are ending, each noted once and followed until its verdict (session-endings.md, rule 5). */
export class Endings {
  readonly #recorder: EndRecorder;
  readonly #context: VerdictContext;
  readonly #indexed: IndexedSessions | undefined;
  readonly #undecided = new Map<string, Ending>();
  readonly #open = new OpenWork();
  /** Those that have ended: a request that loaded one before may still believe that it has a user. */
  readonly #ended = new LRUCache<string, true>({ max: MOST_REMEMBERED });

  /** @param indexed for options that need to know every live session */
  constructor(recorder: EndRecorder, context: VerdictContext, indexed?: IndexedSessions) {
    this.#recorder = recorder;
    this.#context = context;
    this.#indexed = indexed;
  }

  /**
   * To be told before the store is called. Calls that would end the same session join in.
   * @returns resolves when the end is noted; a promise only when the outbox needs one
   */
  begin(
    { sid, uid }: { readonly sid: string | undefined; readonly uid: string },
    reason: EndReason,
    { actors = [], holders = [] }: Parties,
    call: EndingCall,
  ): MaybePromise<unknown> {
    const key = keyOf(sid, uid);
    const known = sid === undefined ? undefined : this.#undecided.get(key);
    if (known) {
      for (const actor of actors) known.actors.add(actor);
      for (const holder of holders) known.holders.add(holder);
      known.calls.push(call);
      known.isKept = false;
      return known.held;
    }
    const held = this.#recorder.hold(uid, reason, sid);
    const parties = { actors: new Set(actors), holders: new Set(holders) };
    const ending: Ending = { sid, uid, ...parties, calls: [call], savedBack: false, isKept: false, held };
    if (sid !== undefined) this.#undecided.set(key, ending);
    this.keepOpen(this.#decide(ending, key));
    return held;
  }

  /** Whether this session has ended for this user, and was not saved with them again. */
  hasEnded(sid: string, uid: string): boolean {
    return this.#ended.has(keyOf(sid, uid));
  }

  /** Whether this session has ended for this user, or may be ending. */
  concerns(sid: string, uid: string): boolean {
    return this.hasEnded(sid, uid) || this.#undecided.has(keyOf(sid, uid));
  }

  /** The session was saved with this user: it may end again. */
  saved(sid: string, uid: string, request: SessionRequest | undefined): void {
    if (this.#ended.size === 0 && this.#undecided.size === 0) return; // on every request of rolling sessions
    const key = keyOf(sid, uid);
    this.#ended.delete(key);
    const ending = this.#undecided.get(key);
    if (!ending || !request) return;
    const parties = partiesOf(ending);
    const others = [...parties].filter((party) => party !== request);
    // Where it was not known which request ended it, one that has let go of it did.
    if (parties.has(request) && others.every(({ sessionID }) => sessionID === sid)) ending.isKept = true;
    else if (!ending.isKept) ending.savedBack = true;
  }

  /** Has `decided` wait for this as well. */
  keepOpen(work: Promise<unknown>): void {
    this.#open.add(work);
  }

  /** Resolves when no verdict is open. */
  async decided(): Promise<void> {
    await this.#open.done();
  }

  async #decide(ending: Ending, key: string): Promise<void> {
    let ended: boolean;
    let heard: number;
    do {
      heard = ending.calls.length;
      // What cannot be decided counts: rather one logout too many.
      ended = await hasEnded(ending, this.#context).catch(() => true);
    } while (ending.calls.length > heard); // one joined in meanwhile
    this.#undecided.delete(key);
    if (ended && ending.sid !== undefined) this.#ended.set(key, true);
    const held = await ending.held;
    const counts = ended && (await this.#counts(ending));
    await (counts ? held?.release([...partiesOf(ending)].map(({ res }) => res)) : held?.cancel());
    if (!ended) await this.#leave(ending);
  }

  /** Whether an end is to be told. */
  async #counts({ sid, uid }: PossibleEnd): Promise<boolean> {
    return this.#indexed && sid !== undefined ? this.#indexed.ended(sid, uid) : true;
  }

  /** It was none: the session lives, or its user has gone on with another. */
  async #leave({ sid, uid }: PossibleEnd): Promise<void> {
    if (!this.#indexed || sid === undefined) return;
    const asked = this.#context.user(sid).catch(() => uid);
    if ((await withTimeout(asked, ASK_TIMEOUT_MS, uid)) !== uid) await this.#indexed.forget(sid, uid);
  }
}

function partiesOf({ actors, holders }: PossibleEnd): ReadonlySet<SessionRequest> {
  return new Set([...actors, ...holders]);
}

function keyOf(sid: string | undefined, uid: string): string {
  return sid === undefined ? uid : `${sid.length} ${sid}${uid}`;
}
