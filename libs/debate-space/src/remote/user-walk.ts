import { createHash } from 'node:crypto';
import type { DebateSpaceUser, ListedPage } from './user-page.js';

/** All users, one after another, of pages as {@link walkPages} walks them. */
export async function* walkUsers(
  list: (page: number) => Promise<ListedPage>,
): AsyncGenerator<DebateSpaceUser> {
  for await (const users of walkPages(list)) yield* users;
}

/**
 * All pages of users. Asks for a page only when the one before is used up, and holds no other. Ends on an
 * empty page, on the page that the service calls the last, and on a page with the users of an earlier one – as from a
 * server that does not know `page`. Pages of anonymised users alone may well look alike: they count as long as the
 * service has counted so many pages.
 */
export async function* walkPages(
  list: (page: number) => Promise<ListedPage>,
): AsyncGenerator<readonly DebateSpaceUser[]> {
  const seen = new Set<string>();
  let pages = 0; // as the service has counted them; the least it has said
  for (let page = 1; ;) {
    const { page: listed, last } = await list(page);
    const { users, nextPage, totalPages } = listed;
    if (totalPages !== undefined) pages = Math.min(totalPages, pages || Infinity);
    const digest = digestOf(users);
    const anonymous = users.every(({ uid }) => typeof uid !== 'string');
    if (users.length === 0 || (seen.has(digest) && !(anonymous && page <= pages))) return;
    yield users;
    if (last) return;
    seen.add(digest);
    page = nextPage !== undefined && nextPage > page ? nextPage : page + 1;
  }
}

/** The same for the same users in any order. */
function digestOf(users: readonly DebateSpaceUser[]): string {
  const records = users.map((user) => JSON.stringify(user)).toSorted();
  return createHash('sha256').update(records.join()).digest('base64');
}
