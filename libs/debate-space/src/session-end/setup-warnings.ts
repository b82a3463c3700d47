import type { Emit, SetupWarningCode } from '../debate-space-event.js';

const MAX_KEYS = 20;
/** Where hosts keep their user; state of a login under way, such as `oauth2:…`, is none. */
const USER_KEY =
  /^(passport|uid|sub|principal|identity|((current|logged_?in|auth)_?)?(user|account|member|customer)(_?(id|name|info|data))?)$/i;

const UID_PROBLEM = [
  'a session has a user, but no uid was found in it',
  'set session.uid to a function that returns the uid, such as (session) => session.user?.email',
] as const;
const OWN_UID_PROBLEM = [
  'a session has a user, but session.uid returned no uid for it',
  'make session.uid return the uid of each user of the debate space; if it leaves out these users on purpose, ignore this warning',
] as const;

/**
 * Warns of setups in which the plugin would miss ends, once of each. A warning names keys of sessions, never values.
 */
export class SetupWarnings {
  readonly #emit: Emit;
  readonly #hasOwnUid: boolean;
  readonly #given = new Set<SetupWarningCode>();

  /** @param hasOwnUid whether the host has its own `session.uid` */
  constructor(emit: Emit, hasOwnUid: boolean) {
    this.#emit = emit;
    this.#hasOwnUid = hasOwnUid;
  }

  /** A session in which no uid was found. Most have no user; thousands of them may come before one that has. */
  sessionWithoutUid(session: object): void {
    if (this.#given.has('uid-not-found')) return;
    const keys = userKeysOf(session);
    if (keys.length === 0) return;
    const [problem, hint] = this.#hasOwnUid ? OWN_UID_PROBLEM : UID_PROBLEM;
    this.#warn(
      'uid-not-found',
      `${problem}; the logouts of such users are not reported (session keys: ${describedKeys(session, keys)})`,
      hint,
    );
  }

  /** A request had a session with a user, and no session store. */
  sessionWithoutStore(session: object): void {
    const keys = userKeysOf(session);
    if (keys.length === 0) return;
    this.#warn(
      'session-without-store',
      `requests have a session with a user, but no session store; their logouts are not reported (session keys: ${describedKeys(session, keys)})`,
      'set session.cookies if the session lives in a cookie, or session.store',
    );
  }

  /** The session middleware of a parent app has run before Nest. */
  sessionOfParentApp(): void {
    this.#warn(
      'session-of-parent-app',
      'Nest is mounted behind the session middleware of a parent app; sessions that ended before the first request to Nest were not seen',
      'set session.store to the store of the parent app',
    );
  }

  /** `store.clear()` was called on a store that does not list its sessions. */
  clearUnlisted(): void {
    this.#warn(
      'clear-not-listed',
      'store.clear() was called, but the store does not list its sessions; only users with a request under way are reported',
      'end the sessions by store.destroy(sid), or call logoutUser(uid) for each user',
    );
  }

  /**
   * A store refuses to be watched.
   * @param part what of it cannot be replaced, such as `method destroy`
   */
  storeNotWatchable(store: string, part: string): void {
    this.#warn(
      'store-not-watchable',
      `the session store ${store} cannot be watched, because its ${part} cannot be replaced; the logouts of its sessions are not reported`,
      'give the session middleware and session.store a store object that is not frozen and whose methods are configurable',
    );
  }

  #warn(code: SetupWarningCode, message: string, hint: string): void {
    if (this.#given.has(code)) return;
    this.#given.add(code);
    this.#emit({ type: 'setup-warning', code, message, hint });
  }
}

/** Keys by which a session seems to have a user. For each anonymous request, so without an array of entries (0.06 µs). */
function userKeysOf(session: object): string[] {
  return Object.keys(session).filter((key) => USER_KEY.test(key) && isGiven(Reflect.get(session, key)));
}

/** Not `passport: {}`, which passport leaves behind. */
function isGiven(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined && value !== null && value !== '' && value !== false; // prettier-ignore
  return Object.values(value).some((each) => each !== undefined && each !== null);
}

function describedKeys(session: object, userKeys: readonly string[]): string {
  const inner = userKeys.flatMap((key) => {
    const value: unknown = Reflect.get(session, key);
    return keysOf(value).flatMap((each) => {
      const more = keysOf(Reflect.get(value as object, each));
      return more.length > 0 ? more.map((name) => `${key}.${each}.${name}`) : [`${key}.${each}`];
    });
  });
  return [...Object.keys(session), ...inner].slice(0, MAX_KEYS).map((key) => key.slice(0, 60)).join(', '); // prettier-ignore
}

function keysOf(value: unknown): string[] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
}
