import type { SetupWarning, SetupWarningCode } from './session-end.js';
import { isObject } from './session-user.js';

const MAX_KEYS = 20;
/** Where hosts keep their user; state of a login under way, such as `oauth2:…`, is none. */
const USER_KEY =
  /^(passport|uid|sub|principal|identity|((current|logged_?in|auth)_?)?(user|account|member|customer)(_?(id|name|info|data))?)$/i;

interface Warning {
  /** @param detail the keys of a session, or what cannot be watched */
  readonly message: (detail: string) => string;
  readonly hint: string;
}

const WARNINGS: Readonly<Record<SetupWarningCode, Warning>> = {
  'uid-not-found': {
    message: (keys) =>
      `a session has a user, but no uid was found in it; the logouts of such users are not reported (session keys: ${keys})`,
    hint: 'give the option uid: a function that returns the uid, such as (session) => session.user?.email',
  },
  'session-without-store': {
    message: (keys) =>
      `requests have a session with a user, but no session store; their logouts are not reported (session keys: ${keys})`,
    hint: 'give the option cookies if the session lives in a cookie, or the option store',
  },
  'session-of-parent-app': {
    message: () =>
      'Nest is mounted behind the session middleware of a parent app; sessions that ended before the first request to Nest were not seen',
    hint: 'give the option store: the store of the parent app',
  },
  'clear-not-listed': {
    message: () =>
      'store.clear() was called, but the store does not list its sessions; only users with a request under way are reported',
    hint: 'end the sessions by store.destroy(sid), or report each user yourself',
  },
  'store-not-answering': {
    message: () =>
      'the session store does not answer when a session is read; the logouts of sessions that no request of this process has loaded are not reported',
    hint: 'see that the store is reachable, and that its get calls back; a store that answers late is asked again',
  },
  'store-not-watchable': {
    message: (what) =>
      `the session store ${what} cannot be replaced; the logouts of its sessions are not reported`,
    hint: 'give the session middleware and the option store a store object that is not frozen and whose methods are configurable',
  },
};
const OWN_UID: Warning = {
  message: (keys) =>
    `a session has a user, but your own function returned no uid for it; the logouts of such users are not reported (session keys: ${keys})`,
  hint: 'make the option uid return the uid of each user; if it leaves out these users on purpose, ignore this warning',
};

/**
 * Warns of setups in which ends would be missed, once of each. A warning names keys of sessions, never values.
 */
export class SetupWarnings {
  readonly #onWarning: (warning: SetupWarning) => void;
  readonly #warnings: Readonly<Record<SetupWarningCode, Warning>>;
  readonly #given = new Set<SetupWarningCode>();

  /** @param hasOwnUid whether the host has its own way to find users */
  constructor(onWarning: (warning: SetupWarning) => void, hasOwnUid: boolean) {
    this.#onWarning = onWarning;
    this.#warnings = hasOwnUid ? { ...WARNINGS, 'uid-not-found': OWN_UID } : WARNINGS;
  }

  warn(code: SetupWarningCode, detail = ''): void {
    if (this.#given.has(code)) return;
    this.#given.add(code);
    const { message, hint } = this.#warnings[code];
    this.#onWarning({ code, message: message(detail), hint });
  }

  /** Warns if the session seems to have a user. Most have none; thousands of them may come before one that has. */
  warnOfUserIn(session: object, code: 'uid-not-found' | 'session-without-store'): void {
    if (this.#given.has(code)) return;
    const keys = userKeysOf(session);
    if (keys.length > 0) this.warn(code, describedKeys(session, keys));
  }
}

/** Keys by which a session seems to have a user. For each anonymous request, so without an array of entries (0.06 µs). */
function userKeysOf(session: object): string[] {
  return Object.keys(session).filter((key) => USER_KEY.test(key) && isGiven(Reflect.get(session, key)));
}

/** Not `passport: {}`, which passport leaves behind. */
function isGiven(value: unknown): boolean {
  if (!isObject(value)) return ![undefined, null, '', false].some((none) => none === value);
  return Object.values(value).some((each) => each !== undefined && each !== null);
}

/** The keys of the session, and those of its user down to the second level. */
function describedKeys(session: object, userKeys: readonly string[]): string {
  const inner = userKeys.flatMap((key) => {
    const user: unknown = Reflect.get(session, key);
    return keysOf(user).flatMap((each) => {
      const more = keysOf(Reflect.get(user as object, each));
      return more.length > 0 ? more.map((name) => `${key}.${each}.${name}`) : [`${key}.${each}`];
    });
  });
  const keys = [...Object.keys(session), ...inner].slice(0, MAX_KEYS);
  return keys.map((key) => key.slice(0, 60)).join(', ');
}

function keysOf(value: unknown): string[] {
  return isObject(value) && !Array.isArray(value) ? Object.keys(value) : [];
}
