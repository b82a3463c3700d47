import { InvalidArgumentError, PageLimitError, RefusedError } from '../errors.js';
import { paginateUsers } from './paginate-users.js';
import type { DebateSpaceUser, ListedPage } from './user-page.js';
import type { ListUsersQuery } from './user-query.js';

/** Half a minute of the documented rate limit. */
export const MAX_FIND_PAGES = 50;
const PER_PAGE = 100;

/**
 * Looks for a user in the list.
 * @throws {@link PageLimitError} when the list goes on after `maxPages`
 */
export async function findInPages(
  uid: string,
  maxPages: number,
  list: (query: ListUsersQuery & { readonly page: number }) => Promise<ListedPage>,
): Promise<DebateSpaceUser | undefined> {
  if (!Number.isSafeInteger(maxPages) || maxPages < 1) throw invalid();
  let filter: { readonly uid?: string } = { uid };
  let pagesRead = 0;
  const pages = paginateUsers(async (page) => {
    if (pagesRead === maxPages) throw tooMany(maxPages);
    pagesRead += 1;
    try {
      return await list({ ...filter, page, perPage: PER_PAGE });
    } catch (error) {
      if (page > 1 || !(error instanceof RefusedError) || error.status !== 422) throw error;
      filter = {};
      return list({ page, perPage: PER_PAGE });
    }
  });
  for await (const users of pages) {
    const found = users.find((user) => user.uid === uid);
    if (found) return found;
  }
  return undefined;
}

function tooMany(maxPages: number): PageLimitError {
  const message = `no such user on the first ${maxPages} pages, and the list goes on: the service does not filter by uid; hint: give a higher maxPages, or walk users() yourself`;
  return new PageLimitError(message, {
    operation: 'findUser',
    retryable: false,
    outcome: 'unknown',
    attempts: maxPages,
  });
}

function invalid(): InvalidArgumentError {
  return new InvalidArgumentError('maxPages must be a whole number from 1', {
    operation: 'findUser',
    retryable: false,
    outcome: 'not-sent',
    attempts: 0,
  });
}
