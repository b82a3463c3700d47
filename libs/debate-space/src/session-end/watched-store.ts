import type { SessionEndReason } from '../events.js';
import { LRUCache } from 'lru-cache';
import {
  changedCookies,
  idIn,
  losesSession,
  proofIn,
  REMEMBERED,
  type CookieScope,
} from './browser-cookies.js';
import { chain, isPromise, type MaybePromise } from '../async/promises.js';
import type { WatchContext } from './context.js';
import { patchStore, storeMethod, type PassOn, type StoreMethodName } from './patch-store.js';
import { NO_OWNERS, PossibleEnds, type Owners } from './possible-ends.js';
import { scopeOf, type OwnedSession, type RequestScope } from './request-scope.js';
import type { SessionRecord } from './session-end.js';
import { SessionReader, type ListedSession } from './session-reader.js';
import { expiryOf, hasExpired, isObject, loadedExpiry } from './session-user.js';
import { UidCount } from './setup-warnings.js';
import { Siblings } from './siblings.js';
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

/** What this process remembers of a session. The store knows better: a session that no open request owns is read again. */
interface Remembered {
  uid: string;
  /** A hash of the cookie by which a request has loaded the session. */
  proof?: string | undefined;
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
  /** The sessions with a user, as this process has last loaded or saved them. */
  readonly #remembered = new LRUCache<string, Remembered>(REMEMBERED);
  readonly #siblings = new Siblings();
  /** By session id: the open requests that own the session. */
  readonly #owners = new Map<string, OwnedSession[]>();
  readonly #waiting: WaitingCalls;
  /** What the last session said of its cookie; the others of the store say the same. */
  #ofSession: CookieScope = {};
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
    if (scope) this.#own(scope, sid, uid, session);
    if (uid === undefined) {
      if (!this.reader.asksLater) this.#remembered.delete(sid);
      this.#context.warnings.withoutUid(session);
      this.#uids.notFound(sid, session);
      return;
    }
    this.#uids.found();
    if (isObject(session.cookie)) this.#ofSession = session.cookie;
    this.#ends.lives(sid, uid, scope);
    if (this.#ends.hasEnded(sid, uid)) return; // the request was open when the session ended
    this.#see(sid, uid, this.#context.liveSessions && loadedExpiry(session, this.#isTouched), scope);
    for (const other of this.#siblings.leftFor(sid))
      if (other.uid === uid)
        this.#ends.left(other.sid, uid, 0); // until any request loads it
      else this.#abandoned(other.sid, other.uid);
  }

  /** A request that owns the session has closed. */
  released(owned: OwnedSession): void {
    const { scope, sid } = owned;
    const owners = this.#owners.get(sid) ?? [];
    if (owners.length <= 1) this.#owners.delete(sid);
    else
      this.#owners.set(
        sid,
        owners.filter((owner) => owner.scope !== scope),
      );
    this.#context.arriving.delete(scope);
    try {
      const uid = this.#userOf(owned);
      if (uid === undefined) {
        if (this.reader.asksLater && !this.#owners.has(sid)) this.#remembered.delete(sid);
      } else if (scope.sessionID !== sid && this.#userNow(scope) === uid) this.#ends.left(sid, uid);
      else if (losesSession(sid, scope)) this.#abandoned(sid, uid);
    } catch (error) {
      this.#context.containment.report('response close', error);
    }
  }

  /** The user of a session that a request has loaded. A guard may have set `request.user` since. */
  #userOf(owned: OwnedSession): string | undefined {
    const { scope, sid, session } = owned;
    if (owned.uid !== undefined || !session || !this.reader.asksLater) return owned.uid;
    owned.uid = this.reader.uidOf(session, scope.native);
    if (owned.uid !== undefined && !this.#ends.concerns(sid, owned.uid)) {
      this.#ends.lives(sid, owned.uid, scope);
      this.#see(sid, owned.uid, expiryOf(session), scope);
    }
    return owned.uid;
  }

  #userNow({ session, native }: RequestScope): string | undefined {
    return session && this.reader.uidOf(session as SessionRecord, native);
  }

  /** A request without a session has closed: a route in front of the session middleware may have changed its cookies. */
  closedWithoutSession(scope: RequestScope): void {
    for (const { from, proof, to } of changedCookies(scope, this.#ofSession)) {
      const sid = idIn(from);
      const known = this.#remembered.get(sid);
      // Browsers send what they like: only the cookie that has loaded the session speaks for it.
      if (known?.proof !== proof) continue;
      const isContinued = to !== undefined && this.#remembered.get(idIn(to))?.uid === known.uid;
      if (!isContinued) this.#abandoned(sid, known.uid);
    }
  }

  /** The browser has lost its cookie, so the session has ended although the store still has it. */
  #abandoned(sid: string, uid: string): void {
    const call = new ObservedCall();
    call.end('done');
    this.#ends.begin({ sid, uid, reason: 'abandoned', call }, NO_OWNERS);
  }

  #own(scope: RequestScope, sid: string, uid: string | undefined, session?: SessionRecord): void {
    const known = scope.owned(this, sid);
    const owned = known ?? { scope, store: this, sid, uid, session };
    owned.uid = uid;
    if (known || !scope.own(owned)) return;
    const others = this.#owners.get(sid);
    if (others) others.push(owned);
    else this.#owners.set(sid, [owned]);
  }

  /** @param by the request that has loaded the session by its cookie */
  #see(sid: string, uid: string, expiresAt: number | undefined, by?: RequestScope): void {
    let known = this.#remembered.get(sid);
    if (!known) this.#remembered.set(sid, (known = { uid }));
    known.uid = uid;
    if (by) known.proof ??= proofIn(by.raw.headers.cookie, sid); // the same until another session has this id
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
    if (!this.#isAsync || typeof sid !== 'string' || this.#owners.has(sid)) return undefined;
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
    const uid = this.#remembered.get(sid)?.uid;
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
    const known = this.#remembered.get(sid)?.uid;
    if (next !== undefined && known === next && !this.#ends.concerns(sid, next)) {
      this.#context.liveSessions?.seen(sid, next, expiryOf(session));
      return undefined;
    }
    const reason = next !== undefined ? 'user-replaced' : user === undefined ? 'user-removed' : 'destroyed';
    const { ended, read } = this.#end(sid, next, reason, scope);
    return {
      ended: (outcome) => {
        ended(outcome);
        if (outcome === 'failed' || next === undefined) return;
        if (scope) this.#own(scope, sid, next, session);
        if (scope && known !== next) this.#siblings.born(scope, sid, next);
        this.#ends.lives(sid, next, scope);
        if (!this.#ends.hasEnded(sid, next)) this.#see(sid, next, expiryOf(session));
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
  #end(
    sid: string,
    next: string | undefined,
    reason: SessionEndReason,
    by: RequestScope | undefined,
  ): Observed {
    const owned = by ? [by.owned(this, sid) ?? []].flat() : (this.#owners.get(sid) ?? []);
    const call = new ObservedCall();
    const owners = this.#ownersOf(sid, by);
    const begin = (uid: string | undefined): void => {
      if (uid !== undefined && uid !== next) this.#ends.begin({ sid, uid, reason, call }, owners);
    };
    const isNew = by?.sessionID === sid && by.place === undefined;
    const user = owned.length > 0 || isNew ? this.#knownUser(sid, owned) : this.#storedUser(sid);
    let read: Promise<void> | undefined;
    if (isPromise(user)) read = this.#context.tasks.track(user.then(begin));
    else begin(user);
    return {
      ended: (outcome) => {
        call.end(outcome);
        if (outcome === 'failed' || next !== undefined) return;
        this.#remembered.delete(sid);
        if (owned.length === 1) for (const session of owned) session.uid = undefined;
      },
      read: next === undefined ? read : undefined,
    };
  }

  /** The user of a session that open requests own. Each of them has renewed the memory when it loaded the session. */
  #knownUser(sid: string, owned: readonly OwnedSession[]): string | undefined {
    const users = owned.map((each) => this.#userOf(each));
    return this.#remembered.get(sid)?.uid ?? users.find((uid) => uid !== undefined);
  }

  /** The requests to which a call belongs. express-session's `destroy` lets go of `request.session` before the call. */
  #ownersOf(sid: string, by: RequestScope | undefined): Owners {
    if (by) return { scopes: [by], areSure: true };
    const owned = this.#owners.get(sid);
    if (!owned && this.#context.arriving.all.length === 0) return NO_OWNERS;
    const scopes = (owned ?? []).map(({ scope }) => scope);
    for (const scope of this.#context.arriving.all) if (scope.sessionID === sid) scopes.push(scope);
    const letGo = scopes.filter((scope) => !scope.session && !scope.hasLetGo);
    for (const scope of letGo) scope.hasLetGo = true;
    return letGo.length > 0 ? { scopes: letGo, areSure: true } : { scopes, areSure: false };
  }

  /** The user of a session that no open request owns. Where the store cannot be read in time, memory stands in. */
  #storedUser(sid: string): MaybePromise<string | undefined> {
    const { containment, waits, reporter } = this.#context;
    const remembered = this.#remembered.get(sid)?.uid;
    const read = (): MaybePromise<string | undefined> => this.reader.user(sid);
    const user = containment.run<MaybePromise<string | undefined>>('session store', read, remembered);
    if (!isPromise(user)) return user;
    this.#isAsync = true;
    return remembered === undefined ? user : waits.within(user, reporter.answerTimeoutMs, remembered);
  }

  #clear(): Observed {
    const { containment, tasks, warnings } = this.#context;
    const call = new ObservedCall();
    const begun = new Set<string>();
    const begin = (sid: string | undefined, uid: string | undefined): void => {
      const name = sid ?? ` ${uid}`; // a list without ids names each user once
      if (uid === undefined || begun.has(name)) return;
      begun.add(name).add(` ${uid}`);
      const owners = sid === undefined ? NO_OWNERS : this.#ownersOf(sid, undefined);
      this.#ends.begin({ sid, uid, reason: 'cleared', call }, owners);
    };
    const listed = this.reader.sessions();
    // Of a store without a list, only sessions that are remembered can be found.
    const remembered = chain(
      () => listed,
      (all) => (all ? [] : this.#storedUsers()),
    );
    // The sessions of open requests first, in this turn of the event loop: their answers may leave in the next one.
    for (const [sid, owned] of this.#owners) begin(sid, this.#knownUser(sid, owned));
    const beginAll = async (): Promise<void> => {
      const sessions: readonly ListedSession[] | undefined = await listed;
      if (!sessions) warnings.warn('clear-not-listed');
      for (const [n, [sid, user]] of [...(await remembered), ...(sessions ?? [])].entries()) {
        if (n % SLICE === 0) await new Promise(setImmediate);
        begin(sid, typeof user === 'string' ? user : user && this.reader.uidOf(user));
      }
    };
    void tasks.track(Promise.resolve(containment.run('store.clear', beginAll, undefined)));
    return {
      ended: (outcome) => {
        call.end(outcome);
        if (outcome !== 'failed') this.#remembered.clear();
      },
      read: isPromise(remembered) && (isPromise(listed) || this.#isAsync) ? remembered : undefined,
    };
  }

  /** All reads are begun in this tick: before the store is cleared. */
  async #storedUsers(): Promise<readonly (readonly [sid: string, uid: string | undefined])[]> {
    const sids = [...this.#remembered.keys()].filter((sid) => !this.#owners.has(sid));
    return Promise.all(sids.map(async (sid) => [sid, await this.#storedUser(sid)] as const));
  }
}
