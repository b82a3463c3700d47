import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { DebateSpaceUser, ListedPage } from './user-page.js';

/** So many pages in a row may bring no new uid: those of anonymized users look alike. */
const MAX_PAGES_WITHOUT_NEW = 100;
/** So many uids are remembered, to tell a page that brings none that is new. */
const MAX_UIDS = 10_000;

/** All users, one after another, of pages as {@link paginateUsers} gives them. */
export async function* iterateUsers(
  list: (page: number) => Promise<ListedPage>,
): AsyncGenerator<DebateSpaceUser> {
  for await (const users of paginateUsers(list)) yield* users;
}

/**
 * All pages of users. Asks for a page only when the one before is used up, and holds no other; it remembers the last
 * 10,000 uids and a digest of each page. Ends on an empty page, on the page that the service calls the last, after `total-pages`, when
 * `next-page` does not grow, and on a page that repeats: from a service that does not know `page`.
 */
export async function* paginateUsers(
  list: (page: number) => Promise<ListedPage>,
): AsyncGenerator<readonly DebateSpaceUser[]> {
  const repetition = new Repetition();
  for (let page = 1; ;) {
    const { page: listed, last } = await list(page);
    const { users, nextPage = page + 1, totalPages } = listed;
    if (users.length === 0 || repetition.isFoundIn(users, page, totalPages)) return;
    yield users;
    if (last || nextPage <= page || page >= (totalPages ?? Infinity)) return;
    page = nextPage;
  }
}

/** Tells a page that repeats from one that only looks so, because its users are anonymized. */
class Repetition {
  readonly #uids = new LRUCache<string, true>({ max: MAX_UIDS });
  readonly #pages = new Set<string>();
  #pagesWithoutNew = 0;
  /** The least that the service has said. */
  #totalPages = Infinity;

  isFoundIn(users: readonly DebateSpaceUser[], page: number, totalPages = Infinity): boolean {
    const uids = users.flatMap(({ uid }) => (typeof uid === 'string' ? [uid] : []));
    const isNew = uids.some((uid) => !this.#uids.has(uid));
    for (const uid of uids) this.#uids.set(uid, true);
    this.#totalPages = Math.min(this.#totalPages, totalPages);
    this.#pagesWithoutNew = isNew ? 0 : this.#pagesWithoutNew + 1;
    const isAnonymous = uids.length < users.length;
    const isKnown = uids.length > 0 && this.#isKnownPage(uids, users.length);
    if (isKnown) return true;
    if (isNew) return false;
    if (!isAnonymous) return true;
    // Anonymized users come as often as the service has counted; where it does not count, up to a bound.
    return this.#totalPages < Infinity
      ? page > this.#totalPages
      : this.#pagesWithoutNew > MAX_PAGES_WITHOUT_NEW;
  }

  /** Whether a page had these uids already, in any order, and as many other users. */
  #isKnownPage(uids: readonly string[], length: number): boolean {
    const digest = createHash('sha256')
      .update(`${length}\n${uids.toSorted().join('\n')}`)
      .digest('base64');
    const isKnown = this.#pages.has(digest);
    this.#pages.add(digest);
    return isKnown;
  }
}
