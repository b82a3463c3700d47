import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { PageLimitError, RefusedError, UnexpectedResponseError } from '../../errors.js';
import {
  positiveInteger,
  type DebateSpaceUser,
  type ListedPage,
  type ListUsersQuery,
  type UserPage,
} from './listed-users.js';

/** So many pages in a row may bring no new uid: those of anonymized users look alike. */
const MAX_PAGES_WITHOUT_NEW = 100;
/** So many pages in a row may repeat others: users who register during the walk move the others to later pages. */
const MAX_REPETITIONS = 2;
/** So many pages are read over when users have gone, because that has moved the others to earlier pages. */
const MAX_PAGES_BACK = 10;
/** So many users are remembered, to tell a page that brings none that is new. */
const MAX_KNOWN = 10_000;
const REPEATED = 'its pages repeat, and it does not say that they are all';
/** Half a minute of the documented rate limit. */
export const MAX_FIND_PAGES = 50;
const FIND_PER_PAGE = 100;

/** @param mayBeBehind whether the page before may have been the last one: a page that does not exist is then no failure */
type ReadPage = (page: number, mayBeBehind: boolean) => Promise<ListedPage>;

/**
 * All users, one after another. Asks for a page only when the one before is used up; remembers the last 10,000 users, which
 * come once each, and a digest of each page. Ends on the page that the service calls the last. Where the service does not
 * say where it is, ends on an empty page, on one that does not exist, and when pages repeat: it does not know `page` then.
 * @throws {@link UnexpectedResponseError} when it cannot tell whether it has come to all users
 */
export async function* iterateUsers(list: ReadPage): AsyncGenerator<DebateSpaceUser> {
  const walk = new Walk();
  let previous: ReadBefore | undefined;
  for (let number: number | undefined = 1; number !== undefined;) {
    const listed = await list(number, previous !== undefined && walk.mayEndAfter(previous));
    yield* walk.take(listed);
    if (previous) yield* movedBack(list, walk, previous, listed.page);
    previous = { number, listed };
    number = walk.nextAfter(previous);
  }
}

interface ReadBefore {
  readonly number: number;
  readonly listed: ListedPage;
}

/** The users that have moved to pages that were read already, because others have gone in between. */
async function* movedBack(
  list: ReadPage,
  walk: Walk,
  { number, listed: { page: before } }: ReadBefore,
  now: UserPage,
): AsyncGenerator<DebateSpaceUser> {
  const size = Math.max(1, before.users.length);
  let gone = goneBetween(before, now, size);
  for (let back = 0; gone > back * size && back < number; back += 1) {
    if (back === MAX_PAGES_BACK) throw walk.incomplete('too many users have gone from it during the walk');
    const { page } = await list(number - back, false);
    gone = Math.max(gone, goneBetween(before, page, size));
    yield* walk.takeAgain(page.users);
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
 * @throws {@link PageLimitError} when the list goes on after `maxPages`
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

/** How far a walk has come. */
class Walk {
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN });
  readonly #pages = new Set<string>();
  #pagesRead = 0;
  #usersRead = 0;
  #pagesWithoutNew = 0;
  #repetitions = 0;
  /** The least that the service has said. */
  #total: number | undefined;
  #totalPages: number | undefined;

  /** @returns the users of a page that have not come yet; anonymized ones may look alike, and always come */
  take({ page: { users, total, totalPages } }: ListedPage): readonly DebateSpaceUser[] {
    const uids = users.flatMap((user) => (hasUid(user) ? [user.uid] : []));
    const isKnown = uids.length > 0 && this.#isKnownPage(uids, users.length);
    const unknown = new Set(this.#remember(users));
    const taken = isKnown ? [] : users.filter((user) => unknown.has(user) || !hasUid(user));
    const isNew = taken.some(hasUid);
    const isRepetition = isKnown || (!isNew && uids.length > 0 && uids.length === users.length);
    this.#pagesRead += 1;
    this.#usersRead += taken.length;
    this.#pagesWithoutNew = isNew ? 0 : this.#pagesWithoutNew + 1;
    if (isNew || isRepetition) this.#repetitions = isNew ? 0 : this.#repetitions + 1;
    this.#total = least(this.#total, total);
    this.#totalPages = least(this.#totalPages, totalPages);
    return taken;
  }

  /** @returns the users of a page that was read before, without all that have come */
  takeAgain(users: readonly DebateSpaceUser[]): readonly DebateSpaceUser[] {
    const taken = this.#remember(users);
    this.#usersRead += taken.length;
    return taken;
  }

  /** Whether the next page may not exist: the service has not said that there is one. */
  mayEndAfter({ number, listed: { more } }: ReadBefore): boolean {
    return !more && this.#hasAll(true) && number >= (this.#totalPages ?? 0);
  }

  /**
   * @returns the number of the next page; `undefined` when this one was the last
   * @throws {@link UnexpectedResponseError} when it cannot tell
   */
  nextAfter({ number, listed: { page, last, more } }: ReadBefore): number | undefined {
    const { users, nextPage, totalPages = Infinity } = page;
    const isRepeated = this.#repetitions > 0;
    const staysBehind = nextPage !== undefined && nextPage <= number;
    if (last || (staysBehind && number >= totalPages && !isRepeated)) {
      // Only a page that does not exist any more is answered with another one.
      if (isRepeated && !this.#hasAll(page.page < number)) throw this.incomplete(REPEATED);
      return undefined;
    }
    const isBehind = number >= (this.#totalPages ?? 0);
    if (!more && isBehind) {
      if (users.length === 0) return undefined;
      if (this.#repetitions >= MAX_REPETITIONS && this.#hasAll(true)) return undefined;
    }
    if (this.#repetitions > MAX_REPETITIONS) throw this.incomplete(REPEATED);
    if (this.#pagesWithoutNew > MAX_PAGES_WITHOUT_NEW && (isBehind || users.length === 0))
      throw this.incomplete('it has too many pages in a row without a new user');
    return nextPage === undefined || staysBehind ? number + 1 : nextPage;
  }

  incomplete(problem: string): UnexpectedResponseError {
    const message = `the user list cannot be read to its end: ${problem}; hint: walk it again later, and if that fails, too, ask the operator of the service`;
    const attempts = this.#pagesRead;
    const details = { operation: 'listUsers', retryable: true, outcome: 'unknown', attempts } as const;
    return new UnexpectedResponseError(message, details);
  }

  /** @param otherwise the answer for a service that does not count its users */
  #hasAll(otherwise: boolean): boolean {
    return this.#total === undefined ? otherwise : this.#usersRead >= this.#total;
  }

  /** @returns those that were not known */
  #remember(users: readonly DebateSpaceUser[]): readonly DebateSpaceUser[] {
    return users.filter((user) => {
      const key = hasUid(user) ? `uid ${user.uid}` : digestOf(JSON.stringify(user));
      const isKnown = this.#known.has(key);
      this.#known.set(key, true);
      return !isKnown;
    });
  }

  /** Whether a page had these uids already, in any order, and as many other users. */
  #isKnownPage(uids: readonly string[], length: number): boolean {
    const digest = digestOf(`${length}\n${uids.toSorted().join('\n')}`);
    const isKnown = this.#pages.has(digest);
    this.#pages.add(digest);
    return isKnown;
  }
}

function hasUid(user: DebateSpaceUser): user is DebateSpaceUser & { readonly uid: string } {
  return typeof user.uid === 'string' && user.uid !== '';
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}
