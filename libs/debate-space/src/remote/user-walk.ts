import { createHash } from 'node:crypto';
import type { DebateSpaceUser, ListedPage } from './user-page.js';

/**
 * All users, page after page. Asks for a page only when the one before is used up, and holds no other. Ends on an
 * empty page, on the page that the service calls the last, and on a page that repeats the one before – as from a
 * server that does not know `page` – unless the service has counted its pages and this is one of them: two pages of
 * anonymised users may well look alike.
 */
export async function* walkUsers(
  list: (page: number) => Promise<ListedPage>,
): AsyncGenerator<DebateSpaceUser> {
  let before = '';
  let counted = false;
  for (let page = 1; ;) {
    const { page: listed, last } = await list(page);
    const { users, nextPage, totalPages = 0 } = listed;
    const digest = createHash('sha256').update(JSON.stringify(users)).digest('base64');
    if (users.length === 0 || (digest === before && !counted)) return;
    yield* users;
    if (last) return;
    before = digest;
    counted = nextPage === page + 1 && nextPage <= totalPages;
    page = nextPage !== undefined && nextPage > page ? nextPage : page + 1;
  }
}
