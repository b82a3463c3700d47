import { LRUCache } from 'lru-cache';

const MOST_REMEMBERED = 10_000;

/** Who has logged in here of late, for `logout.onRelogin: 'drop'`: an end may be proven after the next login. */
export class RecentLogins {
  readonly #at = new LRUCache<string, number>({ max: MOST_REMEMBERED });

  add(uid: string): void {
    this.#at.set(uid, performance.now()); // the machine's clock may be put back
  }

  /** Whether this user has logged in after this moment, by `performance.now()`. */
  hasSince(uid: string, moment: number): boolean {
    return (this.#at.get(uid) ?? -Infinity) > moment;
  }
}
