import type { Containment } from '../containment.js';
import type { EndReason } from '../debate-space-event.js';
import type { SessionRecord, SessionUid } from '../debate-space.options.js';
import { isPromise } from '../is-promise.js';
import { CallQueue, type ObservedCall } from './call-queue.js';
import type { EndRecorder } from './end-recorder.js';
import { Endings, type Parties } from './endings.js';
import type { IndexedSessions } from './indexed-sessions.js';
import { LiveSessions } from './live-sessions.js';
import { patchStore, type StoreMethodName } from './patch-store.js';
import { hasRunOut } from './session-expiry.js';
import { ownerOf, setOwner } from './session-owner.js';
import { SessionReader } from './session-reader.js';
import { sessionRequest, type SessionRequest } from './session-request.js';
import type { SetupWarnings } from './setup-warnings.js';
import { StoreOperation } from './store-operation.js';
import type { SettleOptions } from './settled.js';

export interface WatchedStoreOptions extends SettleOptions {
  readonly recorder: EndRecorder;
  readonly uid: SessionUid;
  readonly warnings: SetupWarnings;
  /** For options that need to know every live session. */
  readonly indexed?: IndexedSessions | undefined;
}

type MaybePromise<T> = T | PromiseLike<T>;

/**
 * Sees every operation of one store instance that can end a session (session-endings.md, rules 1 to 3). What it sees
 * goes to the endings; the host's call stays what it was.
 */
export class WatchedStore {
  readonly #containment: Containment;
  readonly #recorder: EndRecorder;
  readonly #warnings: SetupWarnings;
  readonly #calls: CallQueue;
  readonly #reader: SessionReader;
  readonly #live: LiveSessions;
  readonly #endings: Endings;
  readonly #indexed: IndexedSessions | undefined;
  /** Whose session a request had at first; kept only for those who ask who has logged in. */
  readonly #loadedAs = new WeakMap<SessionRequest, string>();
  /** The request whose `regenerate` is calling `destroy` right now. */
  #regenerating: SessionRequest | undefined;

  /** Stops watching. */
  readonly release: () => void;

  constructor(store: object, options: WatchedStoreOptions) {
    const { recorder, uid, indexed, containment, warnings } = options;
    this.#containment = containment;
    this.#recorder = recorder;
    this.#warnings = warnings;
    this.#calls = new CallQueue(containment, recorder.storageTimeoutMs);
    this.#reader = new SessionReader(store, uid, containment);
    this.#indexed = indexed;
    this.#live = new LiveSessions(containment, (sid, user, request) => {
      this.#abandoned(sid, user, request);
    });
    const context = {
      ...options,
      user: (sid: string) => this.#reader.user(sid),
      leftWith: this.#live.leftWith.bind(this.#live),
    };
    this.#endings = new Endings(recorder, context, indexed);
    this.release = patchStore(store, (name, next, self, args) => {
      const where = `store.${name}`;
      const call = containment.run<ObservedCall>(where, () => this.#observe(name, where, args), { where, sid: undefined }); // prettier-ignore
      return this.#calls.call(next, self, args, call);
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
      this.#warnings.sessionWithoutUid(session);
      return;
    }
    if (this.#recorder.wantsLogins) this.#loadedAs.set(request, uid);
    this.#live.link(sessionID, uid, request);
    this.#indexed?.loaded(sessionID, uid, session as SessionRecord);
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

  #observe(name: StoreMethodName, where: string, args: readonly unknown[]): ObservedCall {
    switch (name) {
      case 'createSession':
        return this.#createSession(where, args);
      case 'regenerate':
        return this.#regenerate(where, args);
      case 'touch':
        return this.#touch(where, args);
      case 'set':
        return this.#set(where, args);
      case 'destroy':
        return this.#destroy(where, args);
      case 'clear':
        return this.#clear(where);
      case 'get':
        return { where, sid: args[0] as string };
      case 'all':
      case 'length':
      case 'ids':
        return { where, sid: undefined };
    }
  }

  #createSession(where: string, [native]: readonly unknown[]): ObservedCall {
    const returned = (): void => {
      const request = sessionRequest(native);
      if (request) this.loaded(request);
    };
    return { where, sid: undefined, immediate: true, returned };
  }

  #regenerate(where: string, [native]: readonly unknown[]): ObservedCall {
    this.#regenerating = sessionRequest(native);
    const returned = (): void => {
      this.#regenerating = undefined;
    };
    return { where, sid: undefined, immediate: true, returned };
  }

  #touch(where: string, args: readonly unknown[]): ObservedCall {
    const [sid, session] = args as [string, SessionRecord];
    const uid = this.#live.uidOf(sid);
    if (uid !== undefined && hasRunOut(session, Date.now())) return this.#set(where, args);
    if (uid !== undefined) this.#indexed?.touched(sid, uid, session);
    return { where, sid };
  }

  #set(where: string, args: readonly unknown[]): ObservedCall {
    const [sid, session] = args as [string, SessionRecord];
    const request = ownerOf(session);
    let uid: string | undefined;
    let operation: StoreOperation | undefined;
    let login = false;
    const before = (): MaybePromise<unknown> => {
      const user = this.#reader.uidOf(session, request);
      // Saved as run out, a session is over: the way of some hosts to log out.
      uid = user !== undefined && hasRunOut(session, Date.now()) ? undefined : user;
      if (user === undefined) this.#warnings.sessionWithoutUid(session);
      // As on every request of rolling sessions: the user stays, and nothing ends.
      if (uid !== undefined && this.#live.uidOf(sid) === uid && !this.#endings.hasEnded(sid, uid)) return;
      const call = (operation = new StoreOperation());
      const reason = uid !== undefined ? 'user-replaced' : user === undefined ? 'user-removed' : 'destroyed';
      const parties = request ? { actors: [request] } : { holders: this.#live.requestsOf(sid) };
      const begin = (previous: string | undefined): MaybePromise<unknown> => {
        if (previous === uid) return undefined;
        login = uid !== undefined && this.#hasCome(uid, request) && !this.#endings.concerns(sid, uid);
        return this.#begin(sid, previous, reason, parties, call);
      };
      return this.#userBefore(sid, request, begin);
    };
    const ended: ObservedCall['ended'] = (outcome) => {
      operation?.end(outcome);
      if (outcome === 'failed') return;
      if (uid === undefined) {
        this.#indexed?.anonymous(sid);
        this.#live.forget(sid);
        return;
      }
      this.#live.link(sid, uid, request);
      this.#indexed?.saved(sid, uid, session);
      this.#endings.saved(sid, uid, request);
      if (login) this.#recorder.loggedIn(uid);
    };
    return { where, sid, before, ended };
  }

  #destroy(where: string, args: readonly unknown[]): ObservedCall {
    const sids = [args[0]].flat() as string[]; // some stores take several at once
    const regenerating = this.#regenerating;
    const operation = new StoreOperation();
    const begun = (sid: string): MaybePromise<unknown> => {
      const parties = this.#partiesOf(sid, regenerating);
      const begin = (user: string | undefined): MaybePromise<unknown> =>
        this.#begin(sid, user, 'destroyed', parties, operation);
      const loaded = parties.actors && this.#live.uidLoadedBy(sid, parties.actors);
      // Another request has renewed the session since, and its user stays; this one may be leaving.
      if (loaded !== undefined && this.#live.uidOf(sid) === undefined && !this.#endings.hasEnded(sid, loaded))
        return begin(loaded);
      return this.#userBefore(sid, regenerating, begin);
    };
    const before = (): MaybePromise<unknown> => {
      const each = sids.map(begun);
      return each.some(isPromise) ? Promise.all(each) : undefined;
    };
    const sid = sids.length === 1 ? sids[0] : undefined;
    const ended: ObservedCall['ended'] = (outcome) => {
      // Not every store takes a list: one that does not says that it is done, and has destroyed none.
      operation.end(outcome === 'done' && sid === undefined ? 'silent' : outcome);
      if (outcome !== 'failed' && sid !== undefined) this.#live.forget(sid);
    };
    return { where, sid, before, ended };
  }

  #clear(where: string): ObservedCall {
    const operation = new StoreOperation();
    const begin = (users: readonly (readonly [string | undefined, string])[]): MaybePromise<unknown> => {
      const each = users.map(([sid, user]) => {
        const holders = sid === undefined ? [] : this.#live.requestsOf(sid);
        return this.#begin(sid, user, 'cleared', { holders }, operation);
      });
      return each.some(isPromise) ? Promise.all(each) : undefined;
    };
    const known = (): MaybePromise<unknown> => {
      this.#warnings.clearUnlisted();
      return begin(this.#live.all());
    };
    const before = (): MaybePromise<unknown> => {
      const users = this.#reader.users();
      return users ? this.#kept(users.then((all) => (all ? begin(all) : known()))) : known();
    };
    const ended: ObservedCall['ended'] = (outcome) => {
      operation.end(outcome);
      if (outcome !== 'failed') for (const [sid] of this.#live.all()) this.#live.forget(sid);
    };
    return { where, sid: undefined, before, ended };
  }

  #abandoned(sid: string, uid: string, request: SessionRequest): void {
    if (this.#endings.hasEnded(sid, uid)) return;
    const left = new StoreOperation();
    left.end('done');
    const begin = (): unknown => this.#begin(sid, uid, 'abandoned', { actors: [request] }, left);
    void this.#containment.run('response close', begin, undefined);
  }

  #begin(
    sid: string | undefined,
    uid: string | undefined,
    reason: EndReason,
    parties: Parties,
    operation: StoreOperation,
  ): MaybePromise<unknown> {
    return uid === undefined ? undefined : this.#endings.begin({ sid, uid }, reason, parties, operation);
  }

  /** Not who was there before – whose session is renewed, or saved back after its end – and no job without a user. */
  #hasCome(uid: string, request: SessionRequest | undefined): boolean {
    return request !== undefined && this.#loadedAs.get(request) !== uid;
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
    if (known === undefined ? request && !request.isClosed : !this.#endings.hasEnded(sid, known)) {
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

  /** The request that regenerates the session, those that have just let go of it, or else those that have it. */
  #partiesOf(sid: string, regenerating: SessionRequest | undefined): Parties {
    if (regenerating) return { actors: [regenerating] };
    const holders = this.#live.requestsOf(sid);
    const actors = holders.filter((request) => request.hasLetGo);
    return actors.length > 0 ? { actors } : { holders };
  }
}
