import type { EndReason } from '../debate-space-event.js';
import type { SessionRecord, SessionUid } from '../debate-space.options.js';
import type { EndRecorder } from './end-recorder.js';
import { Endings } from './endings.js';
import type { IndexedSessions } from './indexed-sessions.js';
import { LiveSessions } from './live-sessions.js';
import { ownerOf, setOwner } from './session-owner.js';
import { SessionReader } from './session-reader.js';
import { isClosed, sessionRequest, type SessionRequest } from './session-request.js';
import { isPromise } from '../is-promise.js';
import { type StoreMethod } from './store-call.js';
import { StoreCalls } from './store-calls.js';
import { addStoreLayer } from './store-layers.js';
import { StoreOperation } from './store-operation.js';
import type { VerdictContext } from './verdict.js';

export interface WatchedStoreOptions {
  readonly recorder: EndRecorder;
  readonly uid: SessionUid;
  readonly graceMs: number;
  readonly hurry: AbortSignal;
  readonly fault: (where: string, error: unknown) => void;
  /** For options that need to know every live session. */
  readonly indexed?: IndexedSessions | undefined;
}

type MaybePromise<T> = T | PromiseLike<T>;

/**
 * Sees every operation of one store instance that can end a session (session-endings.md, rules 1 to 3). What it sees
 * goes to the endings; the host's call stays what it was.
 */
export class WatchedStore {
  readonly #store: object;
  readonly #recorder: EndRecorder;
  readonly #calls: StoreCalls;
  readonly #reader: SessionReader;
  readonly #live = new LiveSessions((sid, uid, request) => {
    if (this.#endings.hasEnded(sid, uid)) return;
    const left = new StoreOperation();
    left.end('done');
    void this.#begin(sid, uid, 'abandoned', [request], left);
  });
  readonly #endings: Endings;
  readonly #indexed: IndexedSessions | undefined;
  /** Whose session a request had at first; kept only for those who ask who has logged in. */
  readonly #loadedAs = new WeakMap<SessionRequest, string>();
  /** The request whose `regenerate` is calling `destroy` right now. */
  #regenerating: SessionRequest | undefined;

  /** Stops watching. */
  readonly release: () => void;

  constructor(store: object, { recorder, uid, graceMs, hurry, fault, indexed }: WatchedStoreOptions) {
    this.#store = store;
    this.#recorder = recorder;
    this.#calls = new StoreCalls(store, fault, recorder.waitMs);
    this.#reader = new SessionReader(store, uid, fault);
    this.#indexed = indexed;
    const context: VerdictContext = {
      user: (sid) => this.#reader.user(sid),
      leftWith: (request, before) => this.#live.leftWith(request, before),
      graceMs,
      hurry,
    };
    this.#endings = new Endings(recorder, context, indexed);
    this.release = addStoreLayer(store, {
      createSession: (next, args) => this.#createSession(next, args),
      regenerate: (next, args) => this.#regenerate(next, args),
      get: (next, args) => this.#calls.pass(next, args, args[0] as string),
      touch: (next, args) => this.#touch(next, args),
      set: (next, args) => this.#set(next, args),
      destroy: (next, args) => this.#destroy(next, args),
      clear: (next, args) => this.#clear(next, args),
    });
  }

  /** A request has loaded a session, or made a new one. */
  loaded(request: SessionRequest): void {
    const { session, sessionID } = request;
    if (typeof session !== 'object' || session === null || sessionID === undefined) return;
    setOwner(session, request);
    const uid = this.#reader.uidOf(session as SessionRecord, request);
    if (uid === undefined) {
      this.#indexed?.anonymous(sessionID);
      return;
    }
    if (this.#recorder.wantsLogins) this.#loadedAs.set(request, uid);
    this.#live.link(sessionID, uid, request);
    this.#indexed?.live(sessionID, uid, session as SessionRecord);
  }

  /** Not who was there before – whose session is renewed, or saved back after its end – and no job without a user. */
  #hasCome(uid: string, request: SessionRequest | undefined): boolean {
    return request !== undefined && this.#loadedAs.get(request) !== uid;
  }

  /** The session as the store has it now, if its user is this one. Rejects when that cannot be told. */
  async lookUp(sid: string, uid: string): Promise<SessionRecord | undefined> {
    const session = await this.#reader.session(sid);
    return session && this.#reader.uidIn(session) === uid ? session : undefined;
  }

  /** Resolves when every end so far has its verdict. */
  async decided(): Promise<void> {
    await this.#endings.decided();
  }

  #createSession(original: StoreMethod, args: unknown[]): unknown {
    const returned = original.apply(this.#store, args);
    const request = sessionRequest(args[0]);
    if (request) this.loaded(request);
    return returned;
  }

  #regenerate(original: StoreMethod, args: unknown[]): unknown {
    this.#regenerating = sessionRequest(args[0]);
    try {
      return original.apply(this.#store, args);
    } finally {
      this.#regenerating = undefined;
    }
  }

  #touch(original: StoreMethod, args: unknown[]): unknown {
    const [sid, session] = args as [string, SessionRecord];
    const uid = this.#indexed && this.#live.uidOf(sid);
    if (uid !== undefined) this.#indexed?.touched(sid, uid, session);
    return this.#calls.pass(original, args, sid);
  }

  #set(original: StoreMethod, args: unknown[]): unknown {
    const [sid, session] = args as [string, SessionRecord];
    const request = ownerOf(session);
    let uid: string | undefined;
    let operation: StoreOperation | undefined;
    let login = false;
    const before = (): MaybePromise<unknown> => {
      uid = this.#reader.uidOf(session, request);
      // As on every request of rolling sessions: the user stays, and nothing ends.
      if (uid !== undefined && this.#live.uidOf(sid) === uid && !this.#endings.hasEnded(sid, uid)) return;
      const call = (operation = new StoreOperation());
      const reason = uid === undefined ? 'user-removed' : 'user-replaced';
      const actors = request ? [request] : this.#live.requestsOf(sid);
      const begin = (user: string | undefined): MaybePromise<unknown> => {
        if (user === uid) return undefined;
        login = uid !== undefined && this.#hasCome(uid, request) && !this.#endings.concerns(sid, uid);
        return this.#begin(sid, user, reason, actors, call);
      };
      return this.#userBefore(sid, request, begin);
    };
    return this.#calls.call(original, args, sid, before, (outcome) => {
      operation?.end(outcome);
      if (outcome === 'failed') return;
      if (uid === undefined) {
        this.#indexed?.anonymous(sid);
        this.#live.forget(sid);
        return;
      }
      this.#live.link(sid, uid, request);
      this.#indexed?.live(sid, uid, session);
      this.#endings.saved(sid, uid, request);
      if (login) this.#recorder.loggedIn(uid);
    });
  }

  #destroy(original: StoreMethod, args: unknown[]): unknown {
    const sids = [args[0]].flat() as string[]; // some stores take several at once
    const regenerating = this.#regenerating;
    const operation = new StoreOperation();
    const begun = (sid: string): MaybePromise<unknown> => {
      const actors = this.#actorsOf(sid, regenerating);
      return this.#userBefore(sid, regenerating, (user) =>
        this.#begin(sid, user, 'destroyed', actors, operation),
      );
    };
    const before = (): MaybePromise<unknown> => {
      const each = sids.map(begun);
      return each.some(isPromise) ? Promise.all(each) : undefined;
    };
    const sid = sids.length === 1 ? sids[0] : undefined;
    return this.#calls.call(original, args, sid, before, (outcome) => {
      // Not every store takes a list: one that does not says that it is done, and has destroyed none.
      operation.end(outcome === 'done' && sid === undefined ? 'silent' : outcome);
      if (outcome !== 'failed' && sid !== undefined) this.#live.forget(sid);
    });
  }

  #clear(original: StoreMethod, args: unknown[]): unknown {
    const operation = new StoreOperation();
    const before = async (): Promise<unknown> => {
      const users = (await this.#reader.users()) ?? this.#live.all();
      return Promise.all(
        users.map(([sid, user]) => {
          const actors = sid === undefined ? [] : this.#live.requestsOf(sid);
          return this.#begin(sid, user, 'cleared', actors, operation);
        }),
      );
    };
    const kept = (): Promise<unknown> => this.#kept(before());
    return this.#calls.call(original, args, undefined, kept, (outcome) => {
      operation.end(outcome);
      if (outcome !== 'failed') for (const [sid] of this.#live.all()) this.#live.forget(sid);
    });
  }

  #begin(
    sid: string | undefined,
    uid: string | undefined,
    reason: EndReason,
    actors: readonly SessionRequest[],
    operation: StoreOperation,
  ): MaybePromise<unknown> {
    return uid === undefined ? undefined : this.#endings.begin({ sid, uid }, reason, actors, operation);
  }

  /**
   * Whose session it was: as the requests under way know, or else as the store has it before the operation.
   * @param request the one that ends it, if it is one
   */
  #userBefore(
    sid: string,
    request: SessionRequest | undefined,
    then: (uid: string | undefined) => MaybePromise<unknown>,
  ): MaybePromise<unknown> {
    const known = this.#live.uidOf(sid);
    if (known === undefined ? request && !isClosed(request.res) : !this.#endings.hasEnded(sid, known)) {
      return then(known); // a request that still runs and knows of no user has none
    }
    const asked = this.#reader.user(sid).catch((error: unknown) => {
      if (known === undefined) throw error;
      return known;
    });
    return this.#kept(asked.then(then));
  }

  /** Work that is not over when the store's call gets tired of waiting still counts. */
  #kept(work: Promise<unknown>): Promise<unknown> {
    this.#endings.keepOpen(work);
    return work;
  }

  /** Who is ending this session: the request that regenerates it, those that have just let go of it, or any that has it. */
  #actorsOf(sid: string, regenerating: SessionRequest | undefined): readonly SessionRequest[] {
    if (regenerating) return [regenerating];
    const requests = this.#live.requestsOf(sid);
    const without = requests.filter((request) => request.session === undefined || request.session === null);
    return without.length > 0 ? without : requests;
  }
}
