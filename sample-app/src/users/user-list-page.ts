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
}

export function userListPage({ users, page, perPage, total, totalPages, nextPage }: UserPage): UserListPage {
  const at = (number: number): string => `/admin/users?page=${number}&per_page=${perPage ?? users.length}`;
  const ofPages = totalPages === undefined ? '' : ` of ${count(totalPages)}`;
  const ofAll = total === undefined ? '' : ` ${count(total)} users, the anonymized ones included.`;
  return {
    summary: `Page ${count(page)}${ofPages}.${ofAll}`,
    users: users.map(userRow),
    previous: page > 1 ? at(page - 1) : undefined,
    next: nextPage === undefined ? undefined : at(nextPage),
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
