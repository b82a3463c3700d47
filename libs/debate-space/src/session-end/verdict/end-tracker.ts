import { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../../async/maybe-promise.js';
import type { EndReason } from '../../events.js';
import { withTimeout } from '../../async/with-timeout.js';
import type { DetectorContext } from './detector-context.js';
import { ASK_TIMEOUT_MS, hasEnded } from './decide-end.js';
import type { DecisionContext, EndCandidate, ObservedCall } from './decide-end.js';
import type { HeldEnd } from './end-recorder.js';
import type { SessionRequest } from './session-request.js';

/** The requests that have to do with an end: those that are ending the session, or those that only have it. */
export type Parties = Partial<Readonly<Record<'actors' | 'holders', readonly SessionRequest[]>>>;

/** A call of the store that may end a session. */
export interface PossibleEnd extends Parties {
  /** Absent when the store does not tell the ids of the sessions it clears. */
  readonly sid: string | undefined;
  readonly uid: string;
  readonly reason: EndReason;
  readonly call: ObservedCall;
}

interface UndecidedEnd extends EndCandidate {
  readonly actors: Set<SessionRequest>;
  readonly holders: Set<SessionRequest>;
  readonly calls: ObservedCall[];
  savedBack: boolean;
  /** Whether a request that takes part has saved the session with its user again: then others may save it as well. */
  isKept: boolean;
  readonly held: MaybePromise<HeldEnd | undefined>;
}

const MAX_REMEMBERED = 10_000;

/** The sessions that are ending, each held once and followed until its verdict (session-endings.md, rule 5). */
export class EndTracker {
  readonly #context: DetectorContext & DecisionContext;
  readonly #undecided = new Map<string, UndecidedEnd>();
  /**
   * Those that have ended: a request that loaded one before may still believe that it has a user. With the responses of
   * the requests that took part: a socket is one request, and its user may log in and out again.
   */
  readonly #ended = new LRUCache<string, readonly WeakRef<object>[]>({ max: MAX_REMEMBERED });

  constructor(context: DetectorContext & DecisionContext) {
    this.#context = context;
  }

  /**
   * To be called before the store is. Calls that would end the same session join in.
   * @returns resolves when the end is held; a promise only when the storage needs one
   */
  begin({ sid, uid, reason, call, actors = [], holders = [] }: PossibleEnd): MaybePromise<unknown> {
    const { recorder, tasks } = this.#context;
    const key = keyOf(sid, uid);
    const known = this.#undecided.get(key);
    if (known) {
      for (const actor of actors) known.actors.add(actor);
      for (const holder of holders) known.holders.add(holder);
      known.calls.push(call);
      known.isKept = false;
      return known.held;
    }
    const held = recorder.hold(uid, reason);
    const parties = { actors: new Set(actors), holders: new Set(holders) };
    const end: UndecidedEnd = { sid, uid, ...parties, calls: [call], savedBack: false, isKept: false, held };
    if (sid !== undefined) this.#undecided.set(key, end);
    void tasks.track(this.#decide(end, key));
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
    for (const response of this.#ended.get(key) ?? []) this.#context.recorder.rearm(uid, response.deref());
    this.#ended.delete(key);
    const end = this.#undecided.get(key);
    if (!end || !request) return;
    const parties = partiesOf(end);
    const others = parties.filter((party) => party !== request);
    // Where it was not known which request ended it, one that has let go of it did.
    if (parties.includes(request) && others.every(({ sessionID }) => sessionID === sid)) end.isKept = true;
    else if (!end.isKept) end.savedBack = true;
  }

  async #decide(end: UndecidedEnd, key: string): Promise<void> {
    const { sid, uid, calls } = end;
    const { reader, registryWriter } = this.#context;
    let ended: boolean;
    let heard: number;
    do {
      heard = calls.length;
      // What cannot be decided counts: rather one logout too many.
      ended = await hasEnded(end, this.#context).catch(() => true);
    } while (calls.length > heard); // one joined in meanwhile
    this.#undecided.delete(key);
    const responses = partiesOf(end).map(({ res }) => res);
    if (ended && sid !== undefined)
      this.#ended.set(
        key,
        responses.map((response) => new WeakRef(response)),
      );
    const held = await end.held;
    const counts = ended && (sid === undefined || !registryWriter || (await registryWriter.ended(sid, uid)));
    await (counts ? held?.release(responses) : held?.cancel());
    if (ended || sid === undefined || !registryWriter) return;
    // The session lives, or its user has gone on with another.
    const user = reader.user(sid).catch(() => uid);
    if ((await withTimeout(user, ASK_TIMEOUT_MS, uid)) !== uid) await registryWriter.forget(sid, uid);
  }
}

function partiesOf({ actors, holders }: EndCandidate): readonly SessionRequest[] {
  return [...new Set([...actors, ...holders])];
}

function keyOf(sid: string | undefined, uid: string): string {
  return sid === undefined ? ` ${uid}` : `${sid.length} ${sid}${uid}`;
}
