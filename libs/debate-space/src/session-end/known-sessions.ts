import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  changedCookies,
  idIn,
  losesSession,
  proofIn,
  REMEMBERED,
  setsSession,
  type CookieScope,
} from './browser-cookies.js';
import type { WatchContext } from './context.js';
import { NO_OWNERS, type Owners, type PossibleEnds } from './possible-ends.js';
import type { OwnedSession, RequestScope } from './request-scope.js';
import type { SessionRecord } from './session-end.js';
import type { SessionReader } from './session-reader.js';
import { expiryOf, isObject, loadedExpiry } from './session-user.js';
import { UidCount } from './setup-warnings.js';
import { ObservedCall } from './store-calls.js';

interface Remembered {
  uid: string;
  /** A hash of the cookie by which a request has loaded the session. */
  proof?: string | undefined;
}

/**
 * The sessions of one store that requests load and leave: who owns them now, and whose they were (session-endings.md, rules
 * 1, 6 and 9). The store knows better: a session that no open request owns is read again.
 */
export class KnownSessions {
  /** Whether a request or a call has used the store since it is watched. */
  isUsed = false;
  readonly #context: WatchContext;
  readonly #reader: SessionReader;
  readonly #ends: PossibleEnds;
  readonly #uids: UidCount;
  /** Whether the store has a method `touch`. */
  readonly #hasTouch: boolean;
  /** By session id: the open requests that own the session. */
  readonly #owners = new Map<string, OwnedSession[]>();
  /** The sessions with a user, as this process has last loaded or saved them. */
  readonly #remembered = new LRUCache<string, Remembered>(REMEMBERED);
  readonly #siblings = new Siblings();
  /** The scope of the last session's cookie; the others of the store have the same. */
  #cookieScope: CookieScope = {};

  constructor(context: WatchContext, reader: SessionReader, ends: PossibleEnds, hasTouch: boolean) {
    this.#context = context;
    this.#reader = reader;
    this.#ends = ends;
    this.#hasTouch = hasTouch;
    this.#uids = new UidCount((keys) => {
      context.warnings.warn('uid-never-found', keys);
    });
  }

  /** A request has got a session. @param scope absent for a WebSocket and for `store.load` */
  loaded(scope: RequestScope | undefined, sid: string, session: SessionRecord): void {
    this.isUsed = true;
    const uid = this.userIn(sid, session, scope);
    if (scope) this.own(scope, sid, uid, session);
    if (uid === undefined) {
      if (!this.#reader.readsRequest) this.#remembered.delete(sid);
      return;
    }
    if (isObject(session.cookie)) this.#cookieScope = session.cookie;
    this.#ends.lives(sid, uid, scope);
    if (this.#ends.hasEnded(sid, uid)) return; // the request was open when the session ended
    this.remember(sid, uid, this.#context.liveSessions && loadedExpiry(session, this.#hasTouch), scope);
    for (const other of this.#siblings.leftFor(sid))
      if (other.uid === uid)
        this.#ends.left(other.sid, uid, 0); // until any request loads it
      else this.#abandoned(other.sid, other.uid);
  }

  /** The user of a session that was loaded or is saved. Counts towards the warnings about sessions without a uid. */
  userIn(sid: string, session: SessionRecord, scope: RequestScope | undefined): string | undefined {
    const uid = this.#reader.uidOf(session, scope?.native);
    if (uid === undefined) {
      this.#context.warnings.withoutUid(session);
      this.#uids.notFound(sid, session);
    } else this.#uids.found();
    return uid;
  }

  own(scope: RequestScope, sid: string, uid: string | undefined, session: SessionRecord): void {
    const known = scope.owned(this, sid);
    const owned = known ?? { scope, store: this, sid, uid, session, isAnswered: false };
    owned.uid = uid;
    if (known || !scope.own(owned)) return;
    const others = this.#owners.get(sid);
    if (others) others.push(owned);
    else this.#owners.set(sid, [owned]);
  }

  /** A request that owns the session has closed. */
  released(owned: OwnedSession): void {
    const { scope, sid } = owned;
    const others = this.ownersOf(sid).filter((owner) => owner.scope !== scope);
    if (others.length > 0) this.#owners.set(sid, others);
    else this.#owners.delete(sid);
    this.#context.arriving.delete(scope);
    try {
      const uid = this.#userOf(owned);
      if (uid === undefined) {
        if (this.#reader.readsRequest && others.length === 0) this.#remembered.delete(sid);
      } else if (scope.sessionID !== sid && this.#userNow(scope) === uid) this.#ends.left(sid, uid);
      else if (losesSession(sid, scope)) this.#abandoned(sid, uid);
      else if (!owned.isAnswered && this.#ends.concerns(sid, uid) && setsSession(sid, scope))
        this.#ends.returned(sid, uid, scope);
    } catch (error) {
      this.#context.containment.report('response close', error);
    }
  }

  /** A request without a session has closed: a route in front of the session middleware may have changed its cookies. */
  closedWithoutSession(scope: RequestScope): void {
    for (const { from, proof, to } of changedCookies(scope, this.#cookieScope)) {
      const sid = idIn(from);
      const known = this.#remembered.get(sid);
      // Browsers send what they like: only the cookie that has loaded the session counts.
      if (known?.proof !== proof) continue;
      const isContinued = to !== undefined && this.uid(idIn(to)) === known.uid;
      if (!isContinued) this.#abandoned(sid, known.uid);
    }
  }

  /** The browser has lost its cookie, so the session has ended although the store still has it. */
  #abandoned(sid: string, uid: string): void {
    const call = new ObservedCall();
    call.settle('done');
    this.#ends.begin({ sid, uid, reason: 'abandoned', call }, NO_OWNERS);
  }

  ownersOf(sid: string): readonly OwnedSession[] {
    return this.#owners.get(sid) ?? [];
  }

  /** The open requests to which a call belongs. express-session's `destroy` lets go of `request.session` before the call. */
  callersOf(sid: string, by: RequestScope | undefined): Owners {
    for (const owner of this.ownersOf(sid)) owner.isAnswered ||= owner.scope.res.headersSent;
    if (by) return { scopes: [by], areSure: true };
    const { arriving } = this.#context;
    const owned = this.#owners.get(sid);
    if (!owned && arriving.all.length === 0) return NO_OWNERS;
    const scopes = (owned ?? []).map(({ scope }) => scope);
    for (const scope of arriving.all) if (scope.sessionID === sid) scopes.push(scope);
    // Only the first call after a request has let go of its session can be that of the request.
    const letGo = scopes.filter((scope) => !scope.session && !scope.hasLetGo);
    for (const scope of letGo) scope.hasLetGo = true;
    return letGo.length > 0 ? { scopes: letGo, areSure: true } : { scopes, areSure: false };
  }

  /** @returns the sessions that open requests own, with their users */
  *owned(): Iterable<readonly [sid: string, uid: string | undefined]> {
    for (const [sid, owned] of this.#owners) yield [sid, this.ownedUid(sid, owned)];
  }

  /** The user of a session that open requests own. Each of them has renewed the memory when it loaded the session. */
  ownedUid(sid: string, owned: readonly OwnedSession[]): string | undefined {
    const users = owned.map((each) => this.#userOf(each));
    return this.uid(sid) ?? users.find((uid) => uid !== undefined);
  }

  /** The user of a session that a request has loaded. A guard may have set `request.user` since. */
  #userOf(owned: OwnedSession): string | undefined {
    const { scope, sid, session } = owned;
    if (owned.uid !== undefined || !session || !this.#reader.readsRequest) return owned.uid;
    owned.uid = this.#reader.uidOf(session, scope.native);
    if (owned.uid !== undefined && !this.#ends.concerns(sid, owned.uid)) {
      this.#ends.lives(sid, owned.uid, scope);
      this.remember(sid, owned.uid, expiryOf(session), scope);
    }
    return owned.uid;
  }

  #userNow({ session, native }: RequestScope): string | undefined {
    return session && this.#reader.uidOf(session as SessionRecord, native);
  }

  /** The user of a session, as this process has last loaded or saved it. */
  uid(sid: string): string | undefined {
    return this.#remembered.get(sid)?.uid;
  }

  /** The sessions that are remembered, and that no open request owns. */
  unownedSids(): string[] {
    return [...this.#remembered.keys()].filter((sid) => !this.#owners.has(sid));
  }

  /** @param by the request that has loaded the session by its cookie */
  remember(sid: string, uid: string, expiresAt: number | undefined, by?: RequestScope): void {
    let known = this.#remembered.get(sid);
    if (!known) this.#remembered.set(sid, (known = { uid }));
    known.uid = uid;
    if (by) known.proof ??= proofIn(by.raw.headers.cookie, sid); // the same until another session has this id
    this.#context.liveSessions?.register(sid, uid, expiresAt);
  }

  /** A request has saved a session with a user whom it did not have before. */
  born(scope: RequestScope, sid: string, uid: string): void {
    this.#siblings.born(scope, sid, uid);
  }

  forget(sid: string): void {
    this.#remembered.delete(sid);
  }

  forgetAll(): void {
    this.#remembered.clear();
  }
}

/** More logins with the same cookies are those of programs, which keep no cookie. */
const MAX_SIBLINGS = 20;

interface Family {
  /** The users, by session id. */
  readonly users: Map<string, string>;
  /** Whether the cookies were those of a session, which no other browser has: most people send no cookie when they log in. */
  isOfOneBrowser: boolean;
}

/**
 * Sessions that were born from the same cookies, such as by a login form that was sent twice. The browser keeps one of them,
 * and returns with it: then it has left the others.
 */
class Siblings {
  /** By the hash of the cookies. */
  readonly #families = new LRUCache<string, Family>(REMEMBERED);
  /** By session id, until the browser has returned with one of them. */
  readonly #members = new LRUCache<string, Family>(REMEMBERED);

  born({ raw, sessions }: RequestScope, sid: string, uid: string): void {
    const { cookie } = raw.headers;
    if (cookie === undefined || cookie.includes(sid)) return; // the session of a guest, who has logged in
    const parents = hash('sha256', cookie, 'base64url');
    const family = this.#families.get(parents) ?? { users: new Map<string, string>(), isOfOneBrowser: false };
    if (family.users.size >= MAX_SIBLINGS) family.users.clear();
    family.users.set(sid, uid);
    family.isOfOneBrowser ||= sessions.some((own) => own.sid !== sid && cookie.includes(own.sid));
    this.#families.set(parents, family);
    this.#members.set(sid, family);
  }

  /** A request has loaded the session. @returns the sessions that its browser has left with that */
  leftFor(sid: string): readonly { readonly sid: string; readonly uid: string }[] {
    const family = this.#members.size > 0 ? this.#members.get(sid) : undefined;
    if (!family?.isOfOneBrowser) return [];
    const others = [...family.users].filter(([other]) => other !== sid);
    for (const [each] of family.users) this.#members.delete(each);
    family.users.clear();
    return others.map(([other, user]) => ({ sid: other, uid: user }));
  }
}
