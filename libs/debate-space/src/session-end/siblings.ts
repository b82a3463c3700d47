import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { LRUCache } from 'lru-cache';
import { REMEMBERED } from './browser-cookies.js';

/** More logins with the same cookies are those of programs, which keep no cookie. */
const MAX_SIBLINGS = 20;

/**
 * Sessions of one user that were born from the same cookies of the same browser, such as by a login form that was sent twice.
 * The browser keeps one of them, and returns with it: then the others are nobody's.
 */
export class Siblings {
  readonly #born = new LRUCache<string, Set<string>>(REMEMBERED);
  /** By session id, until the browser has returned with one of them. */
  readonly #families = new LRUCache<string, Set<string>>(REMEMBERED);

  /** A request has saved a session with this user for the first time. */
  born({ cookie = '', 'user-agent': browser = '' }: IncomingHttpHeaders, sid: string, uid: string): void {
    if (cookie.includes(sid)) return; // the session of a guest, who has logged in
    const parent = hash('sha256', JSON.stringify([cookie, browser, uid]), 'base64url');
    const family = this.#born.get(parent) ?? new Set();
    if (family.size >= MAX_SIBLINGS) family.clear();
    this.#born.set(parent, family.add(sid));
    this.#families.set(sid, family);
  }

  /** A request has loaded the session. @returns the siblings that its browser has left with that */
  chosen(sid: string): readonly string[] {
    const family = this.#families.size > 0 ? this.#families.get(sid) : undefined;
    if (!family) return [];
    const others = [...family].filter((other) => other !== sid);
    for (const each of family) this.#families.delete(each);
    family.clear();
    return others;
  }
}
