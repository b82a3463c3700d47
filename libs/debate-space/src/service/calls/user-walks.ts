import { LRUCache } from 'lru-cache';
import { raceAbort } from '../../async/combined-signal.js';
import {
  invalidArgument,
  NoAccountsError,
  PageLimitError,
  RefusedError,
  UnexpectedResponseError,
} from '../../errors.js';
import { namedUid } from '../../uid-rule.js';
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
/** How many pages in a row may list anonymized users only, who have no uid. */
const MAX_PAGES_WITHOUT_NEW = 100;
/** How many pages are read again after users were deleted, because the others have moved to earlier pages. */
const MAX_PAGES_BACK = 10;
/** How many users are remembered, to recognize a page that repeats others. */
const MAX_KNOWN = 10_000;
const REPEATED = 'its pages repeat, and the service does not say that there are no others';
/** Half a minute of the documented rate limit. */
export const MAX_FIND_PAGES = 50;
const FIND_PER_PAGE = 100;

/** @param mayBeBehind whether the page before may have been the last one; a page that does not exist then ends the list */
type ReadPage = (page: number, mayBeBehind: boolean) => Promise<ListedPage>;

/**
 * Yields all users, and each uid once among 10,000. Requests a page only when the consumer has taken all users of the one
 * before. Ends on the page that the service calls the last; if the service does not say, on an empty page, on a page that
 * does not exist, or when pages repeat, because the service then does not know `page`.
 * @throws {@link UnexpectedResponseError} when it is unclear whether these were all users
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

/** Yields the users that have moved to pages that were read already, because others were deleted during the walk. */
async function* movedBack(
  list: ReadPage,
  walk: Walk,
  number: number,
  before: UserPage,
  now: UserPage,
): AsyncGenerator<DebateSpaceUser> {
  const size = Math.max(1, before.users.length);
  let deleted = deletedBetween(before, now, size);
  for (let back = 0; deleted > back * size && back < number; back += 1) {
    if (back === MAX_PAGES_BACK) throw walk.incomplete('too many users were deleted during the walk');
    const { page } = await list(number - back, false);
    deleted = Math.max(deleted, deletedBetween(before, page, size));
    yield* walk.newOf(page.users);
  }
}

/** How many users were deleted, by the service's total, or else by its number of pages: then up to a page more. */
function deletedBetween(before: UserPage, now: UserPage, size: number): number {
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
  const message = `no such user on the first ${attempts} pages, and the list continues: the service does not filter by uid; hint: give a higher maxPages, or loop over users()`;
  return new PageLimitError(message, { operation: 'findUser', outcome: 'unknown', attempts });
}

/** The progress of a walk. */
class Walk {
  readonly #known = new LRUCache<string, true>({ max: MAX_KNOWN });
  #pagesRead = 0;
  #usersRead = 0;
  #repetitions = 0;
  #pagesWithoutNew = 0;
  /** The lowest total of users that the service has sent. */
  #total = Infinity;
  /** As the first page has it. */
  #totalPages: number | undefined;
  /** Whether the page that was just read may have been the last one: the service did not say that another one follows. */
  mayBeOver = false;

  /** @returns the new users of a page; an anonymized user, who has no uid, counts as new unless the page is a repetition */
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

  /** @returns the users whose uid is new */
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
   * @throws {@link UnexpectedResponseError} when it is unclear whether it was the last
   */
  nextNumber(number: number, { page, follows }: ListedPage): number | undefined {
    const { users, nextPage = number + 1, totalPages = Infinity } = page;
    const isRepetition = this.#repetitions > 0;
    const isLast = follows === false || (nextPage <= number && number >= totalPages && !isRepetition);
    if (isLast) {
      // A repetition is harmless only where the service answers a page that no longer exists with another one.
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

  /** Whether the service has counted more users than the walk has read. */
  get #isShort(): boolean {
    return this.#total !== Infinity && this.#usersRead < this.#total;
  }
}

/**
 * A function of the host that finds out which of these uids have an account.
 * @param uids at most 100, each of them once
 * @returns the uids that have an account, spelled as in `uids`, in any order: an array, a `Set` or another iterable
 */
export type FindAccounts = (uids: readonly string[]) => Iterable<string> | Promise<Iterable<string>>;

/** A registered user of the debate space whose account in the host is gone, as the service lists the user. */
export interface OrphanedUser extends DebateSpaceUser {
  readonly uid: string;
}

/** Options of `DebateSpaceService.orphans`. */
export interface OrphansOptions {
  /** Ends the walk: the loop throws an `AbortError`, also while `findAccounts` is running. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether to continue when `findAccounts` finds no account for the first users. Otherwise the loop throws a
   * {@link NoAccountsError}, because a wrong column or an empty table would make every user an orphan. @defaultValue `false`
   */
  readonly allowNoMatch?: boolean | undefined;
}

/** How many uids one call of `findAccounts` gets: enough for one `IN (…)` of any database. */
const BATCH = 100;

/**
 * Yields the users without an account. Holds 100 users at a time.
 * @param users all registered users; anonymized ones, who have no uid, are skipped
 * @throws {@link NoAccountsError}, {@link InvalidArgumentError}, or the error of `findAccounts`
 */
export async function* findOrphans(
  users: AsyncIterable<DebateSpaceUser>,
  findAccounts: FindAccounts,
  { signal, allowNoMatch = false }: OrphansOptions,
): AsyncGenerator<OrphanedUser> {
  let hasMatched = allowNoMatch;
  const batch = new Map<string, OrphanedUser>(); // by uid: a list that changes during the walk has a user twice
  async function* orphansInBatch(): AsyncGenerator<OrphanedUser> {
    const existing = await existingOf(findAccounts, batch, signal);
    if (!hasMatched && existing.size === 0) throw new NoAccountsError(batch.size);
    hasMatched = true;
    for (const [uid, user] of batch) if (!existing.has(uid)) yield user;
    batch.clear();
  }
  for await (const user of users) {
    if (!hasUid(user)) continue;
    batch.set(user.uid, user);
    if (batch.size === BATCH) yield* orphansInBatch();
  }
  if (batch.size > 0) yield* orphansInBatch();
}

/** @throws {@link InvalidArgumentError} when `findAccounts` returns something else than uids of the batch; its own error */
async function existingOf(
  findAccounts: FindAccounts,
  batch: ReadonlyMap<string, OrphanedUser>,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<string>> {
  const answer = (async (): Promise<unknown> => findAccounts([...batch.keys()]))();
  const found: unknown = await (signal ? raceAbort(answer, signal) : answer);
  if (!isIterable(found))
    throw refused(`must return an array or a Set of uids, and returned ${kindOf(found)}`);
  const existing = new Set<string>();
  for (const item of found) {
    const uid = typeof item === 'string' ? item : namedUid(item); // any text: the service may list uids that this plugin would refuse
    if (typeof uid !== 'string')
      throw refused(
        `must return uids, which are strings, and one item is ${kindOf(item)}; hint: return rows.map((row) => String(row.id))`,
      );
    if (!batch.has(uid))
      throw refused(
        'returned a uid that was not in its argument; hint: query with the uids of its argument, and return them in the same spelling, because case counts',
      );
    existing.add(uid);
  }
  return existing;
}

/** Excludes strings, which are iterable, too, and yield letters. */
function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value;
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `of type ${typeof value}`;
}

function refused(problem: string): Error {
  return invalidArgument('orphans', `findAccounts ${problem}`);
}
