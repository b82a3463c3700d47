import type { SessionEndReason } from '../events.js';
import { chain, isPromise, type MaybePromise } from '../async/promises.js';
import { Pace, SLICE, type WatchContext } from './context.js';
import { KnownSessions } from './known-sessions.js';
import { NO_OWNERS, PossibleEnds } from './possible-ends.js';
import { scopeOf, type RequestScope } from './request-scope.js';
import type { SessionRecord } from './session-end.js';
import { SessionReader, type ListedSession } from './session-reader.js';
import { expiryOf, hasExpired, isObject } from './session-user.js';
import {
  ObservedCall,
  observeCall,
  patchStore,
  storeMethod,
  WaitingCalls,
  type PassOn,
  type StoreMethodName,
  type StoreOutcome,
} from './store-calls.js';

/** A store call that may end a session. */
interface PossiblyEnding {
  readonly settled: (outcome: StoreOutcome) => void;
  /** The read that finds the user of the session: the call has to wait for it, or the session could be gone before. */
  readonly read?: Promise<unknown> | undefined;
}

/**
 * Observes each call of one store instance that can end a session (session-endings.md, rules 1 to 3 and 8). The call is
 * passed on in the same tick. It waits only if it may end a session whose user nobody knows, on an asynchronous store.
 */
export class WatchedStore {
  readonly reader: SessionReader;
  readonly sessions: KnownSessions;
  /** Stops watching. */
  readonly release: () => void;
  readonly #context: WatchContext;
  readonly #ends: PossibleEnds;
  readonly #waiting: WaitingCalls;
  readonly #pace = new Pace();
  /** The key of the request in a session of @fastify/session. */
  #requestKey: symbol | undefined;
  /** Whether the store has answered a read later than at once. */
  #isAsync = false;
  /** The request whose `regenerate` is calling `destroy` right now. */
  #regenerating: RequestScope | undefined;

  constructor(store: object, context: WatchContext) {
    this.#context = context;
    this.reader = new SessionReader(store, context);
    this.#ends = new PossibleEnds(context, this.reader);
    const hasTouch = storeMethod(store, 'touch') !== undefined;
    this.sessions = new KnownSessions(context, this.reader, this.#ends, hasTouch);
    this.#waiting = new WaitingCalls(context);
    this.release = patchStore(store, (name, next) => this.#layer(name, next));
  }

  #layer(name: StoreMethodName, next: PassOn): PassOn {
    if (name === 'createSession') return (self, args) => this.#create(next, self, args);
    if (name === 'regenerate') return (self, args) => this.#regenerate(next, self, args);
    const { containment } = this.#context;
    const where = `store.${name}`;
    const observed: PassOn = (self, args) => {
      let ending: PossiblyEnding | undefined;
      try {
        ending = this.#endingOf(name, args);
      } catch (error) {
        containment.report(where, error);
      }
      if (!ending) return next(self, args);
      const { settled, read } = ending;
      const call = (): unknown =>
        observeCall(next, self, args, (outcome) => {
          containment.run(where, () => {
            settled(outcome);
          });
        });
      return read ? this.#waiting.callAfterRead(read, where, call, args) : call();
    };
    return (self, args) => {
      this.sessions.isUsed = true;
      const before = this.#waiting.before(args) ?? (name === 'destroy' ? this.#turnOf(args[0]) : undefined);
      return before
        ? this.#waiting.callAfter(before, where, () => observed(self, args), args)
        : observed(self, args);
    };
  }

  /** express-session makes the session of a request out of what the store holds. */
  #create(next: PassOn, self: unknown, args: ArrayLike<unknown>): unknown {
    const created = next(self, args);
    try {
      const { session, sessionID } = args[0] as { session?: unknown; sessionID?: string };
      if (isObject(session) && sessionID !== undefined)
        this.sessions.loaded(scopeOf(args[0]), sessionID, session as SessionRecord);
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

  /** A job may end thousands of unknown sessions at once: those are read in slices, if the store is asynchronous. */
  #turnOf(sid: unknown): Promise<void> | undefined {
    if (!this.#isAsync || typeof sid !== 'string' || this.sessions.ownersOf(sid).length > 0) return undefined;
    return this.#pace.turn();
  }

  /** @returns `undefined` for a call that ends no session */
  #endingOf(name: StoreMethodName, args: ArrayLike<unknown>): PossiblyEnding | undefined {
    const sid = args[0] as string;
    const session = args[1] as SessionRecord;
    if (name === 'set') return this.#set(sid, session);
    if (name === 'touch') return this.#touch(sid, session);
    if (name === 'clear') return this.#clear();
    // Some stores take several ids.
    const all = [sid].flat().map((each) => this.#leave(each, undefined, 'destroyed', this.#regenerating));
    const reads = all.flatMap(({ read }) => read ?? []);
    return {
      settled: (outcome) => {
        for (const { settled } of all) settled(outcome === 'done' && all.length > 1 ? 'silent' : outcome);
      },
      read: reads.length > 0 ? Promise.all(reads) : undefined,
    };
  }

  #touch(sid: string, session: SessionRecord): PossiblyEnding | undefined {
    const uid = this.sessions.uid(sid);
    if (uid === undefined) return undefined;
    if (hasExpired(session)) return this.#set(sid, session);
    if (!this.#ends.hasEnded(sid, uid)) this.#context.liveSessions?.register(sid, uid, expiryOf(session));
    return undefined;
  }

  #set(sid: string, session: SessionRecord): PossiblyEnding | undefined {
    const { sessions } = this;
    const scope = this.#scopeOf(session);
    if (scope?.sessionID !== undefined && scope.sessionID !== sid) this.#ends.renewing(scope);
    const user = sessions.userIn(sid, session, scope);
    // Some hosts log a user out by saving the session as expired.
    const next = user !== undefined && hasExpired(session) ? undefined : user;
    const known = sessions.uid(sid);
    if (next !== undefined && known === next && !this.#ends.concerns(sid, next)) {
      this.#context.liveSessions?.register(sid, next, expiryOf(session));
      return undefined; // the usual case: a request saves its session with its user
    }
    const reason = next !== undefined ? 'user-replaced' : user === undefined ? 'user-removed' : 'destroyed';
    const { settled, read } = this.#leave(sid, next, reason, scope);
    return {
      settled: (outcome) => {
        settled(outcome);
        if (outcome === 'failed' || next === undefined) return;
        if (scope) sessions.own(scope, sid, next, session);
        if (scope && known !== next) sessions.born(scope, sid, next);
        this.#ends.lives(sid, next, scope);
        if (!this.#ends.hasEnded(sid, next)) sessions.remember(sid, next, expiryOf(session));
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
  #leave(
    sid: string,
    next: string | undefined,
    reason: SessionEndReason,
    by: RequestScope | undefined,
  ): PossiblyEnding {
    const { sessions } = this;
    const owned = by ? [by.owned(sessions, sid) ?? []].flat() : sessions.ownersOf(sid);
    const call = new ObservedCall();
    const callers = sessions.callersOf(sid, by);
    const begin = (uid: string | undefined): void => {
      if (uid !== undefined && uid !== next) this.#ends.begin({ sid, uid, reason, call }, callers);
    };
    const isNew = by?.sessionID === sid && by.place === undefined;
    const user = owned.length > 0 || isNew ? sessions.ownedUid(sid, owned) : this.#storedUser(sid);
    let read: Promise<void> | undefined;
    if (isPromise(user)) read = this.#context.tasks.track(user.then(begin));
    else begin(user);
    return {
      settled: (outcome) => {
        call.settle(outcome);
        if (outcome === 'failed' || next !== undefined) return;
        sessions.forget(sid);
        if (owned.length === 1) for (const session of owned) session.uid = undefined;
      },
      read: next === undefined ? read : undefined,
    };
  }

  /** The user of a session that no open request owns. Where the store cannot be read in time, memory stands in. */
  #storedUser(sid: string): MaybePromise<string | undefined> {
    const { containment, waits, reporter } = this.#context;
    const remembered = this.sessions.uid(sid);
    const read = (): MaybePromise<string | undefined> => this.reader.user(sid);
    const user = containment.run<MaybePromise<string | undefined>>('session store', read, remembered);
    if (!isPromise(user)) return user;
    this.#isAsync = true;
    return remembered === undefined ? user : waits.within(user, reporter.answerTimeoutMs, remembered);
  }

  #clear(): PossiblyEnding {
    const { containment, tasks, warnings } = this.#context;
    const call = new ObservedCall();
    const begun = new Set<string>();
    const begin = (sid: string | undefined, uid: string | undefined): void => {
      const name = sid ?? ` ${uid}`; // a list without ids names each user once
      if (uid === undefined || begun.has(name)) return;
      begun.add(name).add(` ${uid}`);
      const callers = sid === undefined ? NO_OWNERS : this.sessions.callersOf(sid, undefined);
      this.#ends.begin({ sid, uid, reason: 'cleared', call }, callers);
    };
    const listed = this.reader.sessions();
    // Of a store without a list, only sessions that are remembered can be found.
    const remembered = chain(
      () => listed,
      (all) => (all ? [] : this.#storedUsers()),
    );
    // The sessions of open requests first, in this turn of the event loop: their answers may leave in the next one.
    for (const [sid, uid] of this.sessions.owned()) begin(sid, uid);
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
      settled: (outcome) => {
        call.settle(outcome);
        if (outcome !== 'failed') this.sessions.forgetAll();
      },
      read: isPromise(remembered) && (isPromise(listed) || this.#isAsync) ? remembered : undefined,
    };
  }

  /** All reads are begun in this tick: before the store is cleared. */
  async #storedUsers(): Promise<readonly (readonly [sid: string, uid: string | undefined])[]> {
    return Promise.all(
      this.sessions.unownedSids().map(async (sid) => [sid, await this.#storedUser(sid)] as const),
    );
  }
}
