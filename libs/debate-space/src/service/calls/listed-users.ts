import { UnexpectedResponseError } from '../../errors.js';
import { invalidArgument } from '../../errors.js';
import type { DebateSpaceOperation } from '../../errors.js';
import {
  assertAccepted,
  assertSuccess,
  isWebPage,
  jsonBody,
  parsed,
  refusalIn,
  unexpected,
} from '../http/answer.js';
import type { HttpReply } from '../http/exchange.js';
import type { StatusMeanings } from '../http/status-table.js';
import * as v from 'valibot';

type FilterValue = string | number | boolean;

/** Further query parameters of the user list, by the service's own names (`sort`, `created_at.gte`, …). */
export type UserFilters = Readonly<Record<string, FilterValue | readonly FilterValue[] | undefined>>;

/** Which page of the user list (service-interface.md, section 4.4), and any further query parameter. */
export type ListUsersQuery = UserFilters & {
  /** From 1. Default: 1. */
  readonly page?: number;
  /** Users per page; documented services accept 1 to 100. Default: the service's. */
  readonly perPage?: number;
};

/**
 * A user as the service lists it (service-interface.md, section 4.4). The interface does not show the record's fields;
 * these are the ones known from deployed services. All others are kept as they come.
 */
export interface DebateSpaceUser {
  /** Absent or null for an anonymized user. The digits, where the service sends a number. */
  readonly uid?: string | null;
  readonly full_name?: string | null;
  readonly first_name?: string | null;
  readonly last_name?: string | null;
  readonly email?: string | null;
  readonly image_url?: string | null;
  readonly created_at?: string | null;
  readonly [field: string]: unknown;
}

/** One page of the user list. What the service's headers do not say is absent. */
export interface UserPage {
  readonly users: readonly DebateSpaceUser[];
  /** From 1. */
  readonly page: number;
  /** Users per page, as requested or as the service says. */
  readonly perPage?: number;
  /** Users on all pages. */
  readonly total?: number;
  readonly totalPages?: number;
  /** Absent on the last page, and when the service does not say. */
  readonly nextPage?: number;
}

export interface ListedPage {
  readonly page: UserPage;
  /** Whether the service said that this is the last page: without paging headers nobody knows. */
  readonly last: boolean;
  /** Whether the service said that more pages follow. */
  readonly more: boolean;
}

const OURS: Readonly<Record<string, string>> = {
  per_page: 'use perPage',
  api_key: "use the option users.listAuth: 'apiKey'",
  access_token: 'the token goes into a header, automatically',
};

/**
 * The query of the user list. An array gives a parameter several times; `undefined` leaves it out.
 * @throws {@link InvalidArgumentError}
 */
export function userQuery({ page = 1, perPage, ...filters }: ListUsersQuery): URLSearchParams {
  const operation = 'listUsers';
  const query = new URLSearchParams({ page: String(positiveInteger(operation, 'page', page)) });
  if (perPage !== undefined) query.set('per_page', String(positiveInteger(operation, 'perPage', perPage)));
  for (const [name, value] of Object.entries(filters)) {
    if (Object.hasOwn(OURS, name))
      throw invalidArgument(operation, `the filter ${name} is not for you to set: ${OURS[name] ?? ''}`);
    for (const item of [value].flat()) {
      if (item === undefined) continue;
      if (!['string', 'number', 'boolean'].includes(typeof item)) {
        const types = 'a string, a number, a boolean, or several in an array';
        throw invalidArgument(operation, `the filter ${name} must be ${types}`);
      }
      query.append(name, String(item));
    }
  }
  return query;
}

export function positiveInteger(operation: DebateSpaceOperation, name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1) return value;
  throw invalidArgument(operation, `${name} must be a whole number from 1`);
}

const isRecord = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A host that copies a user would copy `__proto__` as the prototype. A number for a uid is its digits. */
function normalized(user: DebateSpaceUser): DebateSpaceUser {
  Reflect.deleteProperty(user, '__proto__');
  const uid: unknown = user.uid;
  return Number.isSafeInteger(uid) ? { ...user, uid: String(uid) } : user;
}

const records = v.array(v.pipe(v.custom<DebateSpaceUser>(isRecord), v.transform(normalized)));

const listBody = v.union([
  records,
  v.pipe(
    v.object({ data: records }),
    v.transform(({ data }) => data),
  ),
]);

const STATUSES: StatusMeanings = {
  404: {
    verdict: 'elsewhere',
    error: UnexpectedResponseError,
    text: 'there is no user list at {base_url}/users',
    hint: '; check baseUrl',
  },
};

/**
 * Reads a list answer: an envelope `{ success, data }` or a bare array, with or without paging headers.
 * @param mayBeBehind whether the page before was good, and did not say whether it was the last
 * @throws {@link Failure}
 */
export function listedPage(reply: HttpReply, asked: ListUsersQuery, mayBeBehind = false): ListedPage {
  if (mayBeBehind && isBehindLast(reply))
    return { page: { users: [], page: asked.page ?? 1 }, last: false, more: false };
  assertSuccess(reply, STATUSES);
  const body = jsonBody(reply);
  assertAccepted(reply, body);
  const { success, output: users } = v.safeParse(listBody, body);
  if (!success) throw unexpected(reply, body === undefined ? 'is empty' : 'is not a list of users');
  // Left as it is, it would be a user whom no uid of a list meets; rounded, it may be somebody else's.
  if (users.some(({ uid }) => typeof (uid as unknown) === 'number'))
    throw unexpected(reply, 'has a number for a uid that JavaScript rounds or that has a fraction');
  const count = (name: string): number | undefined => wholeNumber(reply.header(name));
  const total = count('total');
  const totalPages = count('total-pages');
  const page = count('current-page') ?? asked.page ?? 1;
  const links = pageLinks(reply.header('link'));
  const next = count('next-page') ?? links.get('next');
  // An unreadable header says nothing: a page too many is read rather than one too few.
  const isPaged = links.size > 0 || totalPages !== undefined || reply.header('next-page')?.trim() === '';
  const nextPage = next ?? (totalPages !== undefined && page < totalPages ? page + 1 : undefined);
  const perPage = asked.perPage ?? count('page-items');
  const more = nextPage !== undefined || links.has('next');
  return { page: { users, page, perPage, total, totalPages, nextPage }, last: isPaged && !more, more };
}

/** How services answer a page that does not exist, if not with an empty one. */
function isBehindLast(reply: HttpReply): boolean {
  const { status } = reply;
  if (status === 400 || status === 404) return !isWebPage(reply);
  if (status === 204) return true;
  const body = status === 200 ? parsed(reply.body) : undefined;
  return (
    body === null || (refusalIn(body) === undefined && (Object(body) as { data?: unknown }).data === null)
  );
}

function wholeNumber(text = ''): number | undefined {
  return /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : undefined;
}

/**
 * The pages that a `Link` header (RFC 8288) leads to, by relation; `undefined` where the address does not say. Other
 * links, such as a `preconnect`, are no pages.
 */
function pageLinks(header = ''): ReadonlyMap<string, number | undefined> {
  const links = new Map<string, number | undefined>();
  for (const [, target = '', parameters = ''] of header.matchAll(/<([^>]*)>([^<]*)/g)) {
    const relations = /;\s*rel\s*=\s*"?([^";,]*)/i.exec(parameters)?.[1] ?? '';
    const page = /[?&]page=(\d{1,15})/.exec(target)?.[1];
    for (const [relation] of relations.toLowerCase().matchAll(/(?<!\S)(first|prev|next|last)(?!\S)/g))
      links.set(relation, page === undefined ? undefined : Number(page));
  }
  return links;
}
