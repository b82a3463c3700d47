import { LRUCache } from 'lru-cache';
import { changedCookies, losesSession, REMEMBERED, type SessionCookieScope } from './browser-cookies.js';
import { isPromise, type MaybePromise } from './containment.js';
import type { WatchContext } from './context.js';
import { patchStore, storeMethod, type PassOn, type StoreMethodName } from './patch-store.js';
import { NO_OWNERS, PossibleEnds, type Owners } from './possible-ends.js';
import { scopeOf, type OwnedSession, type RequestScope } from './request-scope.js';
import type { EndReason, SessionRecord } from './session-end.js';
import { SessionReader, type ListedSession } from './session-reader.js';
import { expiryOf, hasExpired, isObject, loadedExpiry } from './session-user.js';
import { UidCount } from './setup-warnings.js';
import { ObservedCall, observeCall, type StoreOutcome } from './store-call.js';
import { WaitingCalls } from './waiting-calls.js';
import { Pace, SLICE } from './waits.js';

/** A store call that may end a session. */
interface Observed {
  /** Called with the outcome of the call. */
  readonly ended: (outcome: StoreOutcome) => void;
  /** The read that finds the user of the session: the call has to wait for it, or the session could be gone before. */
  readonly read?: Promise<unknown> | undefined;
}

/**
 * Observes each call of one store instance that can end a session (session-endings.md, rules 1 to 3 and 8). The call is
 * passed on in the same tick. It waits only if it may end a session whose user nobody knows, on an asynchronous store.
 */
export class WatchedStore {
  readonly reader: SessionReader;
  /** Stops watching. */
  readonly release: () => void;
  /** Whether the store was called since it is watched. */
  isCalled = false;
  readonly #context: WatchContext;
  readonly #ends: PossibleEnds;
  readonly #uids: UidCount;
  /** Whether the store has a method `touch`. */
  readonly #isTouched: boolean;
  /** The user of each session when this process saw it last. */
  readonly #seen = new LRUCache<string, string>(REMEMBERED);
  /** By session id: the open requests that own the session. */
  readonly #owners = new Map<string, OwnedSession[]>();
  readonly #waiting: WaitingCalls;
  /** What the last session said of its cookie; the others of the store say the same. */
  #ofSession: SessionCookieScope = {};
  /** The key of the request in a session of @fastify/session. */
  #requestKey: symbol | undefined;
  readonly #pace = new Pace();
  /** Whether the store has answered a read later than at once. */
  #isAsync = false;
  /** The request whose `regenerate` is calling `destroy` right now. */
  #regenerating: RequestScope | undefined;

  constructor(store: object, context: WatchContext) {
    this.#context = context;
    this.reader = new SessionReader(store, context);
    this.#isTouched = storeMethod(store, 'touch') !== undefined;
    this.#ends = new PossibleEnds(context, this.reader);
    this.#waiting = new WaitingCalls(context);
    this.#uids = new UidCount((keys) => {
      context.warnings.warn('uid-never-found', keys);
    });
    this.release = patchStore(store, (name, next) => this.#layer(name, next));
  }

  /** A request has got a session. @param scope absent for a WebSocket and for `store.load` */
  loaded(scope: RequestScope | undefined, sid: string, session: SessionRecord): void {
    this.isCalled = true;
    const uid = this.reader.uidOf(session, scope?.native);
    if (scope) this.#own(scope, sid, uid);
    if (uid === undefined) {
      this.#context.warnings.withoutUid(session);
      this.#uids.notFound(sid, session);
      return;
    }
    this.#uids.found();
    if (isObject(session.cookie)) this.#ofSession = session.cookie;
    if (scope) this.#ends.loaded(sid, uid, scope);
    if (this.#ends.hasEnded(sid, uid)) return; // the request was open when the session ended
    this.#see(sid, uid, this.#context.liveSessions && loadedExpiry(session, this.#isTouched));
  }

  /** A request that owns the session has closed. */
  released({ scope, sid, uid }: OwnedSession): void {
    const owners = this.#owners.get(sid) ?? [];
    if (owners.length <= 1) this.#owners.delete(sid);
    else
      this.#owners.set(
        sid,
        owners.filter((owner) => owner.scope !== scope),
      );
    this.#context.arriving.delete(scope);
    if (uid === undefined) return;
    try {
      if (scope.sessionID !== sid && this.#userOf(scope) === uid) this.#ends.left(sid, uid);
      else if (losesSession(sid, scope)) this.#abandoned(sid, uid);
    } catch (error) {
      this.#context.containment.report('response close', error);
    }
  }

  #userOf({ session, native }: RequestScope): string | undefined {
    return session && this.reader.uidOf(session as SessionRecord, native);
  }

  /** A request without a session has closed: a route in front of the session middleware may have changed its cookies. */
  closedWithoutSession(scope: RequestScope): void {
    for (const { from, to } of changedCookies(scope, this.#ofSession)) {
      const uid = this.#seen.get(from);
      const isContinued = to !== undefined && this.#seen.get(to) === uid;
      if (uid !== undefined && !isContinued) this.#abandoned(from, uid);
    }
  }

  /** The browser has lost its cookie, so the session has ended although the store still has it. */
  #abandoned(sid: string, uid: string): void {
    const call = new ObservedCall();
    call.end('done');
    this.#ends.begin({ sid, uid, reason: 'abandoned', call }, NO_OWNERS);
  }

  #own(scope: RequestScope, sid: string, uid: string | undefined): void {
    const known = scope.owned(this, sid);
    const session = known ?? { scope, store: this, sid, uid };
    session.uid = uid;
    if (known || !scope.own(session)) return;
    const others = this.#owners.get(sid);
    if (others) others.push(session);
    else this.#owners.set(sid, [session]);
  }

  #see(sid: string, uid: string, expiresAt: number | undefined): void {
    if (this.#seen.get(sid) !== uid) this.#seen.set(sid, uid); // a write of each request would cost
    this.#context.liveSessions?.seen(sid, uid, expiresAt);
  }

  #layer(name: StoreMethodName, next: PassOn): PassOn {
    if (name === 'createSession') return (self, args) => this.#create(next, self, args);
    if (name === 'regenerate') return (self, args) => this.#regenerate(next, self, args);
    const { containment } = this.#context;
    const where = `store.${name}`;
    const observed: PassOn = (self, args) => {
      let seen: Observed | undefined;
      try {
        seen = this.#observe(name, args);
      } catch (error) {
        containment.report(where, error);
      }
      if (!seen) return next(self, args);
      const { ended, read } = seen;
      const call = (): unknown =>
        observeCall(next, self, args, (outcome) => {
          containment.run(where, () => {
            ended(outcome);
          });
        });
      return read ? this.#waiting.callAfterRead(read, where, call, args) : call();
    };
    return (self, args) => {
      this.isCalled = true;
      const before = this.#waiting.before(args) ?? (name === 'destroy' ? this.#turnOf(args[0]) : undefined);
      return before
        ? this.#waiting.callAfter(before, where, () => observed(self, args), args)
        : observed(self, args);
    };
  }

  /** A job may end thousands of unknown sessions at once: those are read in slices, if the store is asynchronous. */
  #turnOf(sid: unknown): Promise<void> | undefined {
    if (!this.#isAsync || typeof sid !== 'string' || this.#seen.has(sid) || this.#owners.has(sid))
      return undefined;
    return this.#pace.turn();
  }

  /** express-session makes the session of a request out of what the store holds. */
  #create(next: PassOn, self: unknown, args: ArrayLike<unknown>): unknown {
    const created = next(self, args);
    try {
      const { session, sessionID } = args[0] as { session?: unknown; sessionID?: string };
      if (isObject(session) && sessionID !== undefined)
        this.loaded(scopeOf(args[0]), sessionID, session as SessionRecord);
    } catch (error) {
      this.#context.containment.report('store.createSession', error);
    }
    return created;
  }

  #regenerate(next: PassOn, self: unknown, args: ArrayLike<unknown>): unknown {
    this.#regenerating = scopeOf(args[0]);
    try {
      return next(self, args);
    } finally {
      this.#regenerating = undefined;
    }
  }

  #observe(name: StoreMethodName, args: ArrayLike<unknown>): Observed | undefined {
    const sid = args[0] as string;
    const session = args[1] as SessionRecord;
    if (name === 'set') return this.#set(sid, session);
    if (name === 'touch') return this.#touch(sid, session);
    if (name === 'clear') return this.#clear();
    // Some stores take several ids.
    const all = [sid].flat().map((each) => this.#end(each, undefined, 'destroyed', this.#regenerating));
    const reads = all.flatMap(({ read }) => read ?? []);
    return {
      ended: (outcome) => {
        for (const { ended } of all) ended(outcome === 'done' && all.length > 1 ? 'silent' : outcome);
      },
      read: reads.length > 0 ? Promise.all(reads) : undefined,
    };
  }

  #touch(sid: string, session: SessionRecord): Observed | undefined {
    const uid = this.#seen.get(sid);
    if (uid === undefined) return undefined;
    if (hasExpired(session)) return this.#set(sid, session);
    if (!this.#ends.hasEnded(sid, uid)) this.#context.liveSessions?.seen(sid, uid, expiryOf(session));
    return undefined;
  }

  #set(sid: string, session: SessionRecord): Observed | undefined {
    const scope = this.#scopeOf(session);
    if (scope?.sessionID !== undefined && scope.sessionID !== sid) this.#ends.renewing(scope);
    const user = this.reader.uidOf(session, scope?.native);
    if (user === undefined) {
      this.#context.warnings.withoutUid(session);
      this.#uids.notFound(sid, session);
    } else this.#uids.found();
    // Some hosts log a user out by saving the session as expired.
    const next = user !== undefined && hasExpired(session) ? undefined : user;
    // The usual case: a request saves its session with its user.
    if (next !== undefined && this.#seen.get(sid) === next && !this.#ends.concerns(sid, next)) {
      this.#context.liveSessions?.seen(sid, next, expiryOf(session));
      return undefined;
    }
    const reason = next !== undefined ? 'user-replaced' : user === undefined ? 'user-removed' : 'destroyed';
    const { ended, read } = this.#end(sid, next, reason, scope);
    return {
      ended: (outcome) => {
        ended(outcome);
        if (outcome === 'failed' || next === undefined) return;
        if (scope) this.#own(scope, sid, next);
        this.#ends.saved(sid, next, scope);
        this.#see(sid, next, expiryOf(session));
      },
      read,
    };
  }

  /** The request that the session library keeps in a session: express-session as `req`, @fastify/session under a symbol. */
  #scopeOf(session: SessionRecord): RequestScope | undefined {
    const { req } = session;
    if (req !== undefined) return scopeOf(req);
    // The symbol is private, and so is found by its description.
    if (!this.#requestKey || !(this.#requestKey in session))
      this.#requestKey = Object.getOwnPropertySymbols(session).find((key) => key.description === 'request');
    return this.#requestKey && scopeOf(Reflect.get(session, this.#requestKey));
  }

  /**
   * A call that leaves a session to the user `next`, or to nobody.
   * @param by the request that makes the call, where that is known
   */
  #end(sid: string, next: string | undefined, reason: EndReason, by: RequestScope | undefined): Observed {
    const owned = by ? [by.owned(this, sid) ?? []].flat() : (this.#owners.get(sid) ?? []);
    const known = this.#seen.get(sid) ?? owned.find(({ uid }) => uid !== undefined)?.uid;
    const call = new ObservedCall();
    const owners = this.#ownersOf(sid, by);
    const begin = (uid: string | undefined): void => {
      if (uid !== undefined && uid !== next) this.#ends.begin({ sid, uid, reason, call }, owners);
    };
    const isNew = by?.sessionID === sid && by.place === undefined;
    const user = known ?? (owned.length > 0 || isNew ? undefined : this.#read(sid));
    let read: Promise<void> | undefined;
    if (isPromise(user)) read = this.#context.tasks.track(user.then(begin));
    else begin(user);
    return {
      ended: (outcome) => {
        call.end(outcome);
        if (outcome === 'failed' || next !== undefined) return;
        this.#seen.delete(sid);
        if (owned.length === 1) for (const session of owned) session.uid = undefined;
      },
      read: next === undefined ? read : undefined,
    };
  }

  /** The requests to which a call belongs. express-session's `destroy` lets go of `request.session` before the call. */
  #ownersOf(sid: string, by: RequestScope | undefined): Owners {
    if (by) return { scopes: [by], areSure: true };
    const owned = this.#owners.get(sid);
    if (!owned && this.#context.arriving.all.length === 0) return NO_OWNERS;
    const scopes = (owned ?? []).map(({ scope }) => scope);
    for (const scope of this.#context.arriving.all) if (scope.sessionID === sid) scopes.push(scope);
    const letGo = scopes.filter(({ session }) => !session);
    return letGo.length > 0 ? { scopes: letGo, areSure: true } : { scopes, areSure: false };
  }

  #read(sid: string): MaybePromise<string | undefined> {
    const read = (): MaybePromise<string | undefined> => this.reader.user(sid);
    const user = this.#context.containment.run<MaybePromise<string | undefined>>(
      'session store',
      read,
      undefined,
    );
    this.#isAsync ||= isPromise(user);
    return user;
  }

  #clear(): Observed {
    const { containment, tasks, warnings } = this.#context;
    const call = new ObservedCall();
    const seen = [...this.#seen.entries()];
    const listed = this.reader.sessions();
    const begun = new Set<string>();
    const begin = (sid: string | undefined, uid: string): void => {
      const name = sid ?? ` ${uid}`; // a list without ids names each user once
      if (begun.has(name)) return;
      begun.add(name).add(` ${uid}`);
      const owners = sid === undefined ? NO_OWNERS : this.#ownersOf(sid, undefined);
      this.#ends.begin({ sid, uid, reason: 'cleared', call }, owners);
    };
    // The sessions of open requests first, in this turn of the event loop: their answers may leave in the next one.
    for (const [sid, uid] of seen) if (this.#owners.has(sid)) begin(sid, uid);
    const beginAll = async (): Promise<void> => {
      for (const [n, [sid, uid]] of seen.entries()) {
        if (n % SLICE === 0) await new Promise(setImmediate);
        begin(sid, uid);
      }
      const sessions: readonly ListedSession[] | undefined = await listed;
      if (!sessions) warnings.warn('clear-not-listed');
      for (const [n, [sid, session]] of (sessions ?? []).entries()) {
        if (n % SLICE === 0) await new Promise(setImmediate);
        const uid = this.reader.uidOf(session);
        if (uid !== undefined) begin(sid, uid);
      }
    };
    void tasks.track(Promise.resolve(containment.run('store.clear', beginAll, undefined)));
    return {
      ended: (outcome) => {
        call.end(outcome);
        if (outcome !== 'failed') this.#seen.clear();
      },
      read: isPromise(listed) ? Promise.resolve(listed) : undefined,
    };
  }
}
