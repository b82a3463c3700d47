import { LRUCache } from 'lru-cache';
import { PageLimitError, RefusedError, UnexpectedResponseError } from '../../errors.js';
import {
  hasUid,
  positiveInteger,
  type DebateSpaceUser,
  type ListedPage,
  type ListUsersQuery,
  type UserPage,
} from './listed-users.js';

/** How many pages in a row may repeat others: users who register during the walk move the others to later pages. */
const MAX_REPETITIONS = 2;
/** How many pages in a row may have nobody new: anonymized users have no uid. */
const MAX_PAGES_WITHOUT_NEW = 100;
/** How many pages are read again when users have gone, because the others have moved to earlier pages. */
const MAX_PAGES_BACK = 10;
/** How many users are remembered, to recognize a page that repeats others. */
const MAX_KNOWN = 10_000;
const REPEATED = 'its pages repeat, and it does not say that they are all';
/** Half a minute of the documented rate limit. */
export const MAX_FIND_PAGES = 50;
const FIND_PER_PAGE = 100;

/** @param mayBeBehind whether the page before may have been the last one: a page that does not exist is then no failure */
type ReadPage = (page: number, mayBeBehind: boolean) => Promise<ListedPage>;

/**
 * All users, one after another; each uid comes once, among 10,000. Asks for a page only when the one before is
 * used up. Ends on the page that the service calls the last; where the service does not say, on an empty page, on a page
 * that does not exist, and when pages repeat, because the service then does not know `page`.
 * @throws {@link UnexpectedResponseError} when it is unclear whether it has come to all users
 */
export async function* iterateUsers(list: ReadPage): AsyncGenerator<DebateSpaceUser> {
  const walk = new Walk();
  let before: { readonly number: number; readonly page: UserPage } | undefined;
  for (let number: number | undefined = 1; number !== undefined;) {
    const listed = await list(number, walk.mayBeOver);
    yield* walk.take(number, listed);
    if (before) yield* movedBack(list, walk, before.number, before.page, listed.page);
    before = { number, page: listed.page };
    number = walk.nextNumber(number, listed);
  }
}

/** The users that have moved to pages that were read already, because others have gone in between. */
async function* movedBack(
  list: ReadPage,
  walk: Walk,
  number: number,
  before: UserPage,
  now: UserPage,
): AsyncGenerator<DebateSpaceUser> {
  const size = Math.max(1, before.users.length);
  let gone = goneBetween(before, now, size);
  for (let back = 0; gone > back * size && back < number; back += 1) {
    if (back === MAX_PAGES_BACK) throw walk.incomplete('too many users have gone from it during the walk');
    const { page } = await list(number - back, false);
    gone = Math.max(gone, goneBetween(before, page, size));
    yield* walk.newOf(page.users);
  }
}

/** How many users have gone, by what the service counts: its users; or else its pages, and then it may be most of one more. */
function goneBetween(before: UserPage, now: UserPage, size: number): number {
  if (before.total !== undefined && now.total !== undefined) return before.total - now.total;
  const pages = (before.totalPages ?? 0) - (now.totalPages ?? before.totalPages ?? 0);
  return pages > 0 ? pages * size + size - 1 : 0;
}

/**
 * Looks for a user in the list.
 * @throws {@link PageLimitError} when the list continues after `maxPages`
 */
export async function findInPages(
  uid: string,
  maxPages: number,
  list: (query: ListUsersQuery, mayBeBehind: boolean) => Promise<ListedPage>,
): Promise<DebateSpaceUser | undefined> {
  positiveInteger('findUser', 'maxPages', maxPages);
  let filter: { readonly uid?: string } = { uid };
  let pagesRead = 0;
  const users = iterateUsers(async (page, mayBeBehind) => {
    if (pagesRead === maxPages) throw tooMany(maxPages);
    pagesRead += 1;
    try {
      return await list({ ...filter, page, perPage: FIND_PER_PAGE }, mayBeBehind);
    } catch (error) {
      if (page > 1 || !(error instanceof RefusedError) || error.status !== 422) throw error;
      filter = {};
      return list({ page, perPage: FIND_PER_PAGE }, mayBeBehind);
    }
  });
  for await (const user of users) if (user.uid === uid) return user;
  return undefined;
}

function tooMany(attempts: number): PageLimitError {
  const message = `no such user on the first ${attempts} pages, and the list continues: the service does not filter by uid; hint: give a higher maxPages, or walk users() yourself`;
  return new PageLimitError(message, { operation: 'findUser', outcome: 'unknown', attempts });
}

/** How far a walk has come. */
class Walk {
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN });
  #pagesRead = 0;
  #usersRead = 0;
  #repetitions = 0;
  #pagesWithoutNew = 0;
  /** Of users: the least that the service has said. */
  #total = Infinity;
  /** What the first page has said. */
  #totalPages: number | undefined;
  /** Whether the page that was read last may have been the last one: the service has not said that another one follows. */
  mayBeOver = false;

  /** @returns the users of a page that have not come yet; anonymized ones, which have no uid, come with each new page */
  take(number: number, { page, follows }: ListedPage): readonly DebateSpaceUser[] {
    const { users, total = Infinity, totalPages = 0 } = page;
    const fresh = new Set<DebateSpaceUser>(this.newOf(users));
    const isRepetition = fresh.size === 0 && users.some(hasUid);
    const taken = isRepetition ? [] : users.filter((user) => fresh.has(user) || !hasUid(user));
    this.#pagesRead += 1;
    this.#usersRead += taken.length - fresh.size;
    this.#total = Math.min(this.#total, total);
    this.#totalPages ??= totalPages;
    this.#repetitions = isRepetition ? this.#repetitions + 1 : 0;
    const isExpected = users.length > 0 && number < this.#totalPages;
    this.#pagesWithoutNew = fresh.size > 0 || isExpected ? 0 : this.#pagesWithoutNew + 1;
    this.mayBeOver = follows !== true && number >= this.#totalPages && !this.#isShort;
    return taken;
  }

  /** @returns the users with a uid that have not come yet */
  newOf(users: readonly DebateSpaceUser[]): readonly DebateSpaceUser[] {
    const fresh = users.filter((user) => {
      const isNew = hasUid(user) && !this.#known.has(user.uid);
      if (isNew) this.#known.set(user.uid, true);
      return isNew;
    });
    this.#usersRead += fresh.length;
    return fresh;
  }

  /**
   * @returns the number of the next page; `undefined` when this one was the last
   * @throws {@link UnexpectedResponseError} when that is unclear
   */
  nextNumber(number: number, { page, follows }: ListedPage): number | undefined {
    const { users, nextPage = number + 1, totalPages = Infinity } = page;
    const isRepetition = this.#repetitions > 0;
    const isLast = follows === false || (nextPage <= number && number >= totalPages && !isRepetition);
    if (isLast) {
      // Only a page that no longer exists may be answered with another page.
      const isUncounted = this.#total === Infinity && page.page >= number;
      if (isRepetition && (this.#isShort || isUncounted)) throw this.incomplete(REPEATED);
      return undefined;
    }
    if (this.mayBeOver && (users.length === 0 || this.#repetitions === MAX_REPETITIONS)) return undefined;
    if (this.#repetitions > MAX_REPETITIONS) throw this.incomplete(REPEATED);
    if (this.#pagesWithoutNew > MAX_PAGES_WITHOUT_NEW)
      throw this.incomplete('it has too many pages in a row without a new user');
    return Math.max(nextPage, number + 1);
  }

  incomplete(problem: string): UnexpectedResponseError {
    const message = `the user list cannot be read to its end: ${problem}; hint: walk it again later; if that fails, too, contact the operator of the service`;
    const attempts = this.#pagesRead;
    const details = { operation: 'listUsers', retryable: true, outcome: 'unknown', attempts } as const;
    return new UnexpectedResponseError(message, details);
  }

  /** Whether the service has counted more users than have come. */
  get #isShort(): boolean {
    return this.#total !== Infinity && this.#usersRead < this.#total;
  }
}
