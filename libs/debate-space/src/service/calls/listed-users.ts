import { invalidArgument, UnexpectedResponseError, type DebateSpaceOperation } from '../../errors.js';
import { assertSuccess, jsonBody, parsed, refusalIn, strangerIn, unexpected } from '../http/answer.js';
import type { HttpReply } from '../http/exchange.js';
import { NOT_FOUND } from '../http/status-table.js';

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
  /** Whether another page follows; `undefined` when the service does not say. */
  readonly follows: boolean | undefined;
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

const NO_LIST = {
  verdict: 'elsewhere',
  error: UnexpectedResponseError,
  text: 'there is no user list at {base_url}/users',
  hint: '; check baseUrl',
} as const;

const USER_BYTES = 16 * 1024;
const USERS = 100;
const MAX_USERS = 250;
/** More would stop the event loop for too long. Of a page of 100 users, each has 500. */
const MAX_VALUES = 50_000;
/** What recursive code, such as `JSON.stringify`, takes without a thought. */
const MAX_DEPTH = 100;
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** How long an answer may be: 16 KiB for each user of a page, of at least 100 and at most 250 users. */
export function maxPageBytes(perPage = USERS): number {
  return USER_BYTES * Math.min(Math.max(perPage, USERS), MAX_USERS);
}

/**
 * Reads a list answer: an envelope `{ success, data }` or a bare array, with or without paging headers.
 * @param mayBeBehind whether the page before was good, and did not say whether it was the last
 * @throws `DebateSpaceRequestError`
 */
export function listedPage(reply: HttpReply, asked: ListUsersQuery, mayBeBehind = false): ListedPage {
  if (mayBeBehind && isBehindLast(reply))
    return { page: { users: [], page: asked.page ?? 1 }, follows: undefined };
  assertSuccess(reply, { 404: NO_LIST, 410: NO_LIST });
  if (!isReadable(reply.body))
    throw unexpected(reply, 'and the body has too many values, or is nested too deeply');
  const body = jsonBody(reply);
  assertSuccess(reply, {}, refusalIn(body));
  const records = Array.isArray(body) ? body : dataOf(body);
  if (!isListOfRecords(records))
    throw unexpected(reply, `and the body is ${body === undefined ? 'empty' : 'not a list of users'}`);
  const users = records.map((record) => normalized(record, reply));
  const count = (name: string): number | undefined => wholeNumber(reply.header(name));
  const page = count('current-page') ?? asked.page ?? 1;
  const perPage = asked.perPage ?? count('page-items');
  const totalPages = count('total-pages');
  const nextPage =
    count('next-page') ?? (totalPages !== undefined && page < totalPages ? page + 1 : undefined);
  // An unreadable header says nothing: a page too many is read rather than one too few.
  const isPaged = totalPages !== undefined || reply.header('next-page')?.trim() === '';
  const follows = nextPage !== undefined || (isPaged ? false : undefined);
  return { page: { users, page, perPage, total: count('total'), totalPages, nextPage }, follows };
}

/** How services answer a page that does not exist, if not with an empty one. */
function isBehindLast(reply: HttpReply): boolean {
  const { status } = reply;
  if (status === 400 || NOT_FOUND.has(status)) return strangerIn(reply) === undefined;
  if (status === 204) return true;
  const body = status === 200 && isReadable(reply.body) ? parsed(reply.body) : undefined;
  return body === null || (dataOf(body) === null && refusalIn(body) === undefined);
}

/** Whether parsing the text, and using what comes of it, takes a bounded time. Looks at what stands outside of strings. */
function isReadable(json = ''): boolean {
  let [values, depth, isQuoted] = [1, 0, false];
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) isQuoted = !isQuoted;
    else if (isQuoted) at += code === BACKSLASH ? 1 : 0;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) depth += 1;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
    else if (code === COMMA) values += 1;
    else continue;
    if (values > MAX_VALUES || depth > MAX_DEPTH) return false;
  }
  return true;
}

function dataOf(body: unknown): unknown {
  return (Object(body) as { data?: unknown }).data;
}

function isListOfRecords(value: unknown): value is DebateSpaceUser[] {
  return (
    Array.isArray(value) &&
    value.every((item) => typeof item === 'object' && item !== null && !Array.isArray(item))
  );
}

/**
 * A number for a uid is its digits. One that JavaScript has rounded may be somebody else's.
 * @throws `DebateSpaceRequestError`
 */
function normalized(user: DebateSpaceUser, reply: HttpReply): DebateSpaceUser {
  // A host that copies the user would make it the prototype of the copy.
  if (Object.hasOwn(user, '__proto__')) Reflect.deleteProperty(user, '__proto__');
  const uid: unknown = user.uid;
  if (typeof uid !== 'number') return user;
  if (Number.isSafeInteger(uid)) return { ...user, uid: String(uid) };
  throw unexpected(
    reply,
    'and the body has a number for a uid that JavaScript rounds or that has a fraction',
  );
}

/** Those of anonymized users are absent, `null` or empty. */
export function hasUid<U extends DebateSpaceUser>(user: U): user is U & { readonly uid: string } {
  return typeof user.uid === 'string' && user.uid !== '';
}

function wholeNumber(text = ''): number | undefined {
  return /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : undefined;
}
