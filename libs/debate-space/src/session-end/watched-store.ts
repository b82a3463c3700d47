import { chain, isPromise, type MaybePromise } from './containment.js';
import type { SessionRecord } from './session-end.js';
import { ActiveRequests } from './active-requests.js';
import { ObservedCall } from './decide-end.js';
import type { WatchContext } from './context.js';
import { EndTracker, type Parties, type PossibleEnd } from './end-tracker.js';
import { hasExpired } from './session-user.js';
import { LearnedCookies, type LeftSession } from './learned-cookies.js';
import { ownerOf, seenRequest, sessionRequest, setOwner } from './session-request.js';
import type { NativeRequest, SessionRequest } from './session-request.js';
import { UidCount } from './setup-warnings.js';
import type { Suspects } from './suspected-ends.js';
import { CallQueue, type StoreCall } from './call-queue.js';
import { patchStore, storeMethod, type PassOn, type StoreMethodName } from './patch-store.js';
import { SessionReader, type ListedSession } from './session-reader.js';

/** A call that saves or destroys a session, until the store has said that it is done. */
interface Write {
  /** Whose session it is then. */
  readonly uid: string | undefined;
  readonly call: ObservedCall;
  /** Whether a later call ends the session, or gives it to another user. */
  isOver: boolean;
}

const ON_ALL_SESSIONS: StoreCall = { sid: undefined };
/** How many of the sessions that a store lists are looked at in one turn of the event loop. */
const SLICE = 100;

/**
 * Observes every call of one store instance that can end a session (session-endings.md, rules 1 to 3). What may be an end
 * goes to the {@link EndTracker} before the store is called; the call is passed on in the same tick. It waits only where
 * it may end a session whose user nobody knows, on an asynchronous store: for the read that finds the user.
 */
export class WatchedStore {
  readonly reader: SessionReader;
  readonly #context: WatchContext;
  readonly #queue: CallQueue;
  readonly #active: ActiveRequests;
  readonly #ends: EndTracker;
  /** Whether the store can be told that a session is used. */
  readonly #isTouched: boolean;
  readonly #cookies = new LearnedCookies();
  readonly #uids: UidCount;
  /** Whose session a request had at first; kept only where logins count. */
  readonly #loadedAs = new WeakMap<SessionRequest, string>();
  /** The last call under way for each session, but for those that leave it to its user and are of no interest. */
  readonly #writes = new Map<string, Write>();
  /** The request whose `regenerate` is calling `destroy` right now. */
  #regenerating: SessionRequest | undefined;

  /** Stops watching. */
  readonly release: () => void;

  constructor(store: object, context: WatchContext) {
    const { containment, reporter } = context;
    this.#context = context;
    this.reader = new SessionReader(store, context);
    this.#queue = new CallQueue(containment, reporter.answerTimeoutMs, (areSome) => {
      patch.watchReads(areSome);
    });
    this.#uids = new UidCount((keys) => {
      context.warnings.warn('uid-never-found', keys);
    });
    this.#active = new ActiveRequests(containment, this.#abandoned.bind(this));
    this.#ends = new EndTracker({ ...context, reader: this.reader, moves: this.#active.moves });
    this.#isTouched = storeMethod(store, 'touch') !== undefined;
    const patch = patchStore(store, (name, next) => this.#layer(name, next));
    this.release = () => {
      patch.remove();
    };
  }

  /** A request has loaded a session, or made a new one. */
  loaded(native: NativeRequest, session: unknown, sessionID: string | undefined): void {
    const { reporter, liveSessions, warnings } = this.#context;
    if (typeof session !== 'object' || session === null || sessionID === undefined) return;
    setOwner(session, native);
    const uid = this.reader.uidOf(session as SessionRecord, native);
    // Nothing is to be known of a request without a user, unless it is known for something else.
    const request = uid === undefined ? seenRequest(native) : sessionRequest(native);
    if (request) request.hasLoaded = true;
    if (uid === undefined || !request) {
      liveSessions?.anonymous(sessionID);
      if (uid !== undefined) return;
      warnings.withoutUid(session);
      this.#uids.notFound(sessionID, session);
      return;
    }
    this.#uids.found();
    if (reporter.wantsLogins) this.#loadedAs.set(request, uid);
    if (this.#ends.concerns(sessionID, uid)) this.#ends.loaded(sessionID, uid, request);
    this.#active.link(sessionID, uid, request);
    this.#cookies.learn(sessionID, session as SessionRecord, request);
    // Not by a request that was under way when the session ended.
    if (liveSessions && !this.#ends.hasEnded(sessionID, uid))
      liveSessions.loaded(sessionID, uid, session as SessionRecord, this.#isTouched);
  }

  /** Whether a browser with these cookies may have a session of this store. */
  mayKnow(cookieHeader: string): boolean {
    return this.#cookies.mayBeIn(cookieHeader);
  }

  /** The response of a request that has loaded no session is closed, and has changed cookies. */
  closedWithoutSession(request: SessionRequest): void {
    const { containment, tasks } = this.#context;
    for (const left of this.#cookies.leftBy(request)) {
      // Another request had renewed the session that the browser sent; the browser has left the new one.
      if (this.#active.moves.after(left.sid)) this.#active.closed(left.sid, undefined, request);
      // Or else the session middleware has seen the cookie, if there is a session id, and found no session.
      else if (request.sessionID === undefined) {
        const leave = (): Promise<void> => this.#left(left, request);
        void tasks.track(Promise.resolve(containment.run('session store', leave, undefined)));
      }
    }
  }

  /** What is called in place of a method of the store. */
  #layer(name: StoreMethodName, next: PassOn): PassOn {
    if (name === 'createSession') return (self, args) => this.#loading(next, self, args);
    if (name === 'regenerate') return (self, args) => this.#regenerate(next, self, args);
    const where = `store.${name}`;
    const { containment } = this.#context;
    return (self, args) => {
      if (this.#queue.isIdle && this.#endsNothing(name, args)) return next(self, args);
      const call = containment.run(where, () => this.#observe(name, args), ON_ALL_SESSIONS);
      return this.#queue.call(where, next, self, args, call);
    };
  }

  /** express-session makes the session of a request out of what the store holds. */
  #loading(next: PassOn, self: unknown, args: ArrayLike<unknown>): unknown {
    const session = next(self, args);
    try {
      const request = sessionRequest(args[0]);
      if (request) this.loaded(request.native, request.session, request.sessionID);
    } catch (error) {
      this.#context.containment.report('store.createSession', error);
    }
    return session;
  }

  #regenerate(next: PassOn, self: unknown, args: ArrayLike<unknown>): unknown {
    const { containment } = this.#context;
    this.#regenerating = containment.run('store.regenerate', () => sessionRequest(args[0]), undefined);
    try {
      return next(self, args);
    } finally {
      this.#regenerating = undefined;
    }
  }

  /**
   * Whether the call is one of those that each request makes: a read, or a session saved or touched with the user that it
   * is known to have. Never throws.
   */
  #endsNothing(name: StoreMethodName, args: ArrayLike<unknown>): boolean {
    if (name !== 'touch' && name !== 'set') return name === 'get';
    const sid = args[0] as string;
    const session = args[1] as SessionRecord;
    const known = this.#active.uidOf(sid);
    if (known === undefined || this.#context.liveSessions || this.#ends.concerns(sid, known)) return false;
    try {
      if (hasExpired(session)) return false;
      if (name === 'touch') return true;
      const request = ownerOf(session);
      if (this.reader.uidOf(session, request?.native) !== known) return false;
      this.#active.link(sid, known, request);
      return true;
    } catch {
      return false; // what cannot be read is looked at with care
    }
  }

  #observe(name: StoreMethodName, args: ArrayLike<unknown>): StoreCall {
    const sid = args[0] as string;
    const session = args[1] as SessionRecord;
    switch (name) {
      case 'touch':
        return this.#touch(sid, session);
      case 'set':
        return this.#set(sid, session);
      case 'destroy':
        return this.#destroy([sid].flat()); // some stores take several in one call
      case 'clear':
        return this.#clear();
      case 'get':
        return { sid };
      default:
        return ON_ALL_SESSIONS;
    }
  }

  #touch(sid: string, session: SessionRecord): StoreCall {
    const uid = this.#active.uidOf(sid);
    if (uid !== undefined && hasExpired(session)) return this.#set(sid, session);
    if (uid !== undefined) this.#context.liveSessions?.touched(sid, uid, session);
    return { sid };
  }

  #set(sid: string, session: SessionRecord): StoreCall {
    const { reporter, liveSessions, warnings } = this.#context;
    const request = ownerOf(session);
    const call = new ObservedCall();
    let uid: string | undefined;
    let isLogin = false;
    let isEnding = false;
    let write: Write | undefined;
    let other: Write | undefined;
    const before = (): MaybePromise<unknown> => {
      const user = this.reader.uidOf(session, request?.native);
      if (user === undefined) warnings.withoutUid(session);
      else this.#uids.found();
      // Some hosts log a user out by saving the session as expired.
      const next = user !== undefined && hasExpired(session) ? undefined : user;
      uid = next;
      other = this.#writes.get(sid);
      // The user stays, and nothing ends.
      if (next !== undefined && this.#active.uidOf(sid) === next && !this.#ends.hasEnded(sid, next)) {
        if (liveSessions) write = this.#write(sid, next, call);
        return;
      }
      if (request) this.#follow(sid, next, request);
      const reason = next !== undefined ? 'user-replaced' : user === undefined ? 'user-removed' : 'destroyed';
      const parties = request ? { actors: [request] } : { holders: this.#active.requestsOf(sid) };
      return this.#withUserBefore(sid, request, (previous) => {
        write = this.#write(sid, next, call);
        if (previous === next) return;
        // A user who renews a session, or saves it back after its end, was there before; nobody logs in by a job.
        if (next !== undefined && request)
          isLogin = this.#loadedAs.get(request) !== next && !this.#ends.concerns(sid, next);
        if (previous === undefined) return;
        isEnding = true;
        this.#begin({ sid, uid: previous, reason, call, ...parties });
      });
    };
    const ended: StoreCall['ended'] = (outcome) => {
      call.end(outcome);
      if (this.#writes.get(sid) === write) this.#writes.delete(sid);
      // The store has destroyed the session before it has said that it was saved.
      if (outcome === 'failed' || write?.isOver) return;
      if (uid === undefined) {
        liveSessions?.anonymous(sid, !isEnding);
        this.#active.forget(sid);
        return;
      }
      this.#active.link(sid, uid, request);
      if (!this.#active.moves.isBehind(sid, request)) liveSessions?.saved(sid, uid, session);
      if (other && other.uid !== uid)
        void this.#context.tasks.track(this.#ends.confirm(sid, uid, other.call));
      this.#ends.saved(sid, uid, session, request);
      if (isLogin) reporter.loggedIn(uid);
    };
    return { sid, before, ended };
  }

  #destroy(sids: readonly string[]): StoreCall {
    const regenerating = this.#regenerating;
    const call = new ObservedCall();
    const begin = (sid: string): MaybePromise<unknown> => {
      const parties = this.#partiesOf(sid, regenerating);
      const loaded = parties.actors && this.#active.uidLoadedBy(sid, parties.actors);
      const end = (uid: string | undefined): void => {
        if (uid !== undefined) this.#begin({ sid, uid, reason: 'destroyed', call, ...parties });
      };
      // Another request has renewed the session since, and its user stays; this one may be leaving.
      if (loaded === undefined || this.#active.uidOf(sid) !== undefined || this.#ends.hasEnded(sid, loaded))
        return this.#withUserBefore(sid, regenerating, end);
      end(loaded);
      return undefined;
    };
    const sid = sids.length === 1 ? sids[0] : undefined;
    let writes: readonly Write[] = [];
    const before = (): MaybePromise<unknown> => {
      const begun = all(sids.map(begin));
      writes = sids.map((each) => this.#write(each, undefined, call));
      return begun;
    };
    const ended: StoreCall['ended'] = (outcome) => {
      // Not every store takes a list: one that does not says that it is done, and has destroyed none.
      call.end(outcome === 'done' && sid === undefined ? 'silent' : outcome);
      for (const [n, each] of sids.entries())
        if (this.#writes.get(each) === writes[n]) this.#writes.delete(each);
      if (outcome !== 'failed' && sid !== undefined) this.#active.forget(sid);
    };
    return { sid, before, ended };
  }

  #clear(): StoreCall {
    const call = new ObservedCall();
    const before = (): MaybePromise<unknown> =>
      chain(
        () => this.reader.sessions(),
        (sessions) => {
          if (!sessions) this.#context.warnings.warn('clear-not-listed');
          const active = new Map(this.#active.all());
          for (const [sid, { uid }] of this.#writes) if (uid !== undefined) active.set(sid, uid);
          for (const [sid, uid] of active) this.#beginCleared(sid, uid, call);
          for (const write of this.#writes.values()) write.isOver = true;
          if (sessions) void this.#context.tasks.track(this.#beginListed(sessions, active, call));
        },
      );
    const ended: StoreCall['ended'] = (outcome) => {
      call.end(outcome);
      if (outcome !== 'failed') for (const [sid] of this.#active.all()) this.#active.forget(sid);
    };
    return { sid: undefined, before, ended };
  }

  /** A call for the session begins, before the store has said that the one before is done. */
  #write(sid: string, uid: string | undefined, call: ObservedCall): Write {
    const before = this.#writes.get(sid);
    if (before && before.uid !== uid) before.isOver = true;
    const write = { uid, call, isOver: false };
    // The store may be done before the user is found.
    if (call.outcome === undefined) this.#writes.set(sid, write);
    return write;
  }

  #beginCleared(sid: string | undefined, uid: string, call: ObservedCall): void {
    const holders = sid === undefined ? [] : this.#active.requestsOf(sid);
    this.#begin({ sid, uid, reason: 'cleared', call, holders });
  }

  /** @param begun the sessions and users whose ends are begun already */
  async #beginListed(
    sessions: readonly ListedSession[],
    begun: ReadonlyMap<string, string>,
    call: ObservedCall,
  ): Promise<void> {
    const uids = new Set(begun.values());
    for (const [n, [sid, session]] of sessions.entries()) {
      if (n % SLICE === 0) await new Promise(setImmediate);
      const uid = this.reader.uidOf(session);
      const isBegun = uid === undefined || (sid === undefined ? uids.has(uid) : begun.has(sid));
      if (isBegun) continue;
      if (sid !== undefined) this.#ends.found(sid, uid);
      this.#beginCleared(sid, uid, call);
    }
  }

  async #left({ sid, next }: LeftSession, request: SessionRequest): Promise<void> {
    const uid = await this.reader.user(sid);
    if (uid === undefined || this.#ends.hasEnded(sid, uid)) return;
    if (next === undefined || (await this.reader.user(next)) !== uid) this.#abandoned(sid, uid, request);
  }

  #abandoned(sid: string, uid: string, ...actors: readonly SessionRequest[]): void {
    const call = new ObservedCall();
    call.end('done');
    this.#begin({ sid, uid, reason: 'abandoned', call, actors });
  }

  /** What has ended does not end again, such as the row of a session that its browser has left. */
  #begin(end: PossibleEnd): void {
    if (end.sid !== undefined && this.#ends.hasEnded(end.sid, end.uid)) return;
    this.#ends.begin(end, end.actors ? undefined : this.#suspectsOf(end));
  }

  /** The request goes on with a session that its browser has not sent: it may be renewing one that another request ends. */
  #follow(sid: string, uid: string | undefined, request: SessionRequest): void {
    const sent = request.cookieHeader?.includes(sid) === false ? this.#cookies.sentBy(request) : undefined;
    if (sent === undefined) return;
    this.#active.follow(request, sent);
    if (uid !== undefined) this.#ends.join(sent, uid, request);
  }

  /**
   * Whose session it was: as the requests under way know, or else as the store has it before the call.
   * @param request the one that ends it, if it is one
   */
  #withUserBefore(
    sid: string,
    request: SessionRequest | undefined,
    work: (uid: string | undefined) => void,
  ): MaybePromise<void> {
    const known = this.#writes.get(sid)?.uid ?? this.#active.uidOf(sid);
    if (known === undefined ? request && this.#active.knows(request) : !this.#ends.hasEnded(sid, known)) {
      work(known);
      return undefined;
    }
    const done = chain(
      () => this.reader.user(sid),
      (uid) => {
        if (uid !== undefined) this.#ends.found(sid, uid);
        work(uid);
      },
      (error) => {
        if (known === undefined) throw error;
        work(known);
      },
    );
    // Work that is not over when the store's call gets tired of waiting still counts.
    return isPromise(done) ? this.#context.tasks.track(done) : done;
  }

  /**
   * The request that regenerates the session, those that have just let go of it, those that have it, or else those that
   * came with it.
   */
  #partiesOf(sid: string, regenerating: SessionRequest | undefined): Parties {
    if (regenerating) return { actors: [regenerating] };
    const holders = this.#active.requestsOf(sid);
    const actors = holders.filter((request) => request.hasLetGo);
    if (actors.length > 0) return { actors };
    if (holders.length > 0) return { holders };
    // Its user may have come by another request of the browser, a moment ago.
    const isOfBrowser = ({ cookieHeader }: SessionRequest): boolean => cookieHeader?.includes(sid) === true;
    return { holders: this.#context.openRequests.unanswered().filter(isOfBrowser) };
  }

  /** Under `last` any request under way may have ended the session, and may log the user in before it is answered. */
  #suspectsOf({ uid, holders = [] }: PossibleEnd): Suspects {
    const { openRequests } = this.#context;
    const own = openRequests.countsAll ? [] : this.#active.requestsOfUser(uid);
    const areOfUser = own.length > 0;
    const all = areOfUser ? own : [...openRequests.unanswered(), ...this.#active.unanswered()];
    return { areOfUser, requests: all.filter((request) => !holders.includes(request)) };
  }
}

/** @returns a promise only when one of them is */
function all(results: readonly unknown[]): MaybePromise<unknown> {
  return results.some(isPromise) ? Promise.all(results) : undefined;
}
