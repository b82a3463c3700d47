import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { PageLimitError, RefusedError } from '../../errors.js';
import {
  positiveInteger,
  type DebateSpaceUser,
  type ListedPage,
  type ListUsersQuery,
} from './listed-users.js';

/** So many pages in a row may bring no new uid: those of anonymized users look alike. */
const MAX_PAGES_WITHOUT_NEW = 100;
/** So many uids are remembered, to tell a page that brings none that is new. */
const MAX_UIDS = 10_000;
/** Half a minute of the documented rate limit. */
export const MAX_FIND_PAGES = 50;
const FIND_PER_PAGE = 100;

/**
 * All users, one after another. Asks for a page only when the one before is used up, and holds no other; it remembers
 * the last 10,000 uids and a digest of each page. Ends on an empty page, on the page that the service calls the last,
 * after `total-pages`, when `next-page` does not grow, and on a page that repeats: from a service that does not know
 * `page`.
 */
export async function* iterateUsers(
  list: (page: number) => Promise<ListedPage>,
): AsyncGenerator<DebateSpaceUser> {
  const repetition = new Repetition();
  for (let page = 1; ;) {
    const { page: listed, last } = await list(page);
    const { users, nextPage = page + 1, totalPages = Infinity } = listed;
    if (users.length === 0 || repetition.isFoundIn(users, page, totalPages)) return;
    yield* users;
    if (last || nextPage <= page || page >= totalPages) return;
    page = nextPage;
  }
}

/**
 * Looks for a user in the list.
 * @throws {@link PageLimitError} when the list goes on after `maxPages`
 */
export async function findInPages(
  uid: string,
  maxPages: number,
  list: (query: ListUsersQuery) => Promise<ListedPage>,
): Promise<DebateSpaceUser | undefined> {
  positiveInteger('findUser', 'maxPages', maxPages);
  let filter: { readonly uid?: string } = { uid };
  let pagesRead = 0;
  const users = iterateUsers(async (page) => {
    if (pagesRead === maxPages) throw tooMany(maxPages);
    pagesRead += 1;
    try {
      return await list({ ...filter, page, perPage: FIND_PER_PAGE });
    } catch (error) {
      if (page > 1 || !(error instanceof RefusedError) || error.status !== 422) throw error;
      filter = {};
      return list({ page, perPage: FIND_PER_PAGE });
    }
  });
  for await (const user of users) if (user.uid === uid) return user;
  return undefined;
}

function tooMany(maxPages: number): PageLimitError {
  const message = `no such user on the first ${maxPages} pages, and the list goes on: the service does not filter by uid; hint: give a higher maxPages, or walk users() yourself`;
  const details = {
    operation: 'findUser',
    retryable: false,
    outcome: 'unknown',
    attempts: maxPages,
  } as const;
  return new PageLimitError(message, details);
}

/** Tells a page that repeats from one that only looks so, because its users are anonymized. */
class Repetition {
  readonly #uids = new LRUCache<string, true>({ max: MAX_UIDS });
  readonly #pages = new Set<string>();
  #pagesWithoutNew = 0;
  /** The least that the service has said. */
  #totalPages = Infinity;

  isFoundIn(users: readonly DebateSpaceUser[], page: number, totalPages: number): boolean {
    const uids = users.flatMap(({ uid }) => (typeof uid === 'string' ? [uid] : []));
    const isNew = uids.some((uid) => !this.#uids.has(uid));
    for (const uid of uids) this.#uids.set(uid, true);
    this.#totalPages = Math.min(this.#totalPages, totalPages);
    this.#pagesWithoutNew = isNew ? 0 : this.#pagesWithoutNew + 1;
    if (uids.length > 0 && this.#isKnownPage(uids, users.length)) return true;
    const isAnonymous = uids.length < users.length;
    if (isNew || !isAnonymous) return !isNew;
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
