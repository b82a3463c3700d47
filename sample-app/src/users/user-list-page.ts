import type { DebateSpaceUser, UserPage } from 'nestjs-debate-space';
import { count, moment } from '../pages/in-words.js';

export interface UserRow {
  /** Absent for an anonymized user. */
  readonly uid: string | undefined;
  readonly name: string;
  readonly email: string;
  readonly registered: string;
}

/** What `views/admin/users.eta` shows. */
export interface UserListPage {
  readonly summary: string;
  readonly users: readonly UserRow[];
  /** Where these lead; absent on the first and on the last page. */
  readonly previous: string | undefined;
  readonly next: string | undefined;
  /** A link behind the summary. */
  readonly way?: { readonly href: string; readonly text: string };
  /** The user name that was looked for. */
  readonly wanted?: string;
}

export function userListPage({ users, page, perPage, total, totalPages, nextPage }: UserPage): UserListPage {
  const at = (number: number): string =>
    `/admin/users?page=${number}${perPage === undefined ? '' : `&per_page=${perPage}`}`;
  const ofPages = totalPages === undefined ? '' : ` of ${count(totalPages)}`;
  const ofAll = total === undefined ? '' : ` ${count(total)} users, the anonymized ones included.`;
  if (users.length === 0 && page > 1) {
    const last = Math.max(1, Math.min(totalPages ?? 1, page - 1));
    return {
      summary: `No users on page ${count(page)}.`,
      way: { href: at(last), text: `Page ${count(last)}${last === totalPages ? ', the last one' : ''}` },
      users: [],
      previous: undefined,
      next: undefined,
    };
  }
  return {
    summary: `Page ${count(page)}${ofPages}.${ofAll}`,
    users: users.map(userRow),
    previous: page > 1 ? at(page - 1) : undefined,
    next: nextPage === undefined ? undefined : at(nextPage),
  };
}

/** The page after a search by user name. */
export function foundUserPage(wanted: string, user: DebateSpaceUser | undefined): UserListPage {
  return {
    summary: user ? 'One user found.' : `Not found: the debate space has no user "${wanted}".`,
    way: { href: '/admin/users', text: 'All users' },
    users: user ? [userRow(user)] : [],
    previous: undefined,
    next: undefined,
    wanted,
  };
}

/** Every field of a record may be missing: the interface does not settle them. */
export function userRow({ uid, full_name, first_name, email, created_at }: DebateSpaceUser): UserRow {
  return {
    uid: uid ?? undefined,
    name: full_name ?? first_name ?? '',
    email: email ?? '',
    registered: created_at ? momentOf(created_at) : '',
  };
}

/** The text itself where it is no date. */
function momentOf(text: string): string {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? text : moment(date);
}
