import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { REMEMBERED } from './browser-cookies.js';
import type { RequestScope } from './request-scope.js';

/** More logins with the same cookies are those of programs, which keep no cookie. */
const MAX_SIBLINGS = 20;

interface Family {
  /** The users, by session id. */
  readonly users: Map<string, string>;
  /** Whether the cookies were those of a session, which no other browser has: most people send none when they log in. */
  isOfOneBrowser: boolean;
}

export interface Sibling {
  readonly sid: string;
  readonly uid: string;
}

/**
 * Sessions that were born from the same cookies, such as by a login form that was sent twice. The browser keeps one of them,
 * and returns with it: then it has left the others.
 */
export class Siblings {
  /** By the hash of the cookies. */
  readonly #families = new LRUCache<string, Family>(REMEMBERED);
  /** By session id, until the browser has returned with one of them. */
  readonly #members = new LRUCache<string, Family>(REMEMBERED);

  /** A request has saved a session with this user for the first time. */
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
  leftFor(sid: string): readonly Sibling[] {
    const family = this.#members.size > 0 ? this.#members.get(sid) : undefined;
    if (!family?.isOfOneBrowser) return [];
    const others = [...family.users].filter(([other]) => other !== sid);
    for (const [each] of family.users) this.#members.delete(each);
    family.users.clear();
    return others.map(([other, user]) => ({ sid: other, uid: user }));
  }
}
