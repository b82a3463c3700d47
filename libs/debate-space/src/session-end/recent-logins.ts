import { LRUCache } from 'lru-cache';

const MOST_REMEMBERED = 10_000;

/** Who has logged in here of late, for `logout.onRelogin: 'drop'`: an end may be proven after the next login. */
export class RecentLogins {
  readonly #at = new LRUCache<string, number>({ max: MOST_REMEMBERED });

  add(uid: string): number {
    const now = Date.now();
    this.#at.set(uid, now);
    return now;
  }

  /** When this user logged in, if that was after this time; milliseconds since 1970. */
  since(uid: string, endedAt: number): number | undefined {
    const at = this.#at.get(uid);
    return at !== undefined && at >= endedAt ? at : undefined;
  }
}
