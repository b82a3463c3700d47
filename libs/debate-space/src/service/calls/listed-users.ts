import { invalidArgument, UnexpectedResponseError, type DebateSpaceOperation } from '../../errors.js';
import { parsed, refusalIn, strangerIn } from '../http/body.js';
import type { HttpReply } from '../http/exchange.js';
import { assertSuccess, jsonBody, NOT_FOUND, unexpected } from '../http/status-table.js';

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
 * A user as the service lists it (service-interface.md, section 4.4). The interface does not show the fields of the record:
 * these are known from deployed services. All others are passed on unchanged.
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

/** One page of the user list. A property is absent when the service does not send its header. */
export interface UserPage {
  readonly users: readonly DebateSpaceUser[];
  /** From 1. */
  readonly page: number;
  /** Users per page: as requested, or else as the service says. */
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

/** Parameters that the plugin sets itself, with the hint. */
const RESERVED: Readonly<Record<string, string>> = {
  per_page: 'use perPage',
  api_key: "use the option users.listAuth: 'apiKey'",
  access_token: 'leave it out, because the plugin sends the token in a header',
};

/**
 * The query of the user list. An array repeats a parameter; `undefined` leaves it out.
 * @throws {@link InvalidArgumentError}
 */
export function userQuery({ page = 1, perPage, ...filters }: ListUsersQuery): URLSearchParams {
  const operation = 'listUsers';
  const query = new URLSearchParams({ page: String(positiveInteger(operation, 'page', page)) });
  if (perPage !== undefined) query.set('per_page', String(positiveInteger(operation, 'perPage', perPage)));
  for (const [name, value] of Object.entries(filters)) {
    if (Object.hasOwn(RESERVED, name))
      throw invalidArgument(operation, `the filter ${name} is reserved; hint: ${RESERVED[name] ?? ''}`);
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
  kind: 'elsewhere',
  error: UnexpectedResponseError,
  text: 'there is no user list at {base_url}/users',
  hint: 'check baseUrl',
} as const;

const USER_BYTES = 16 * 1024;
const USERS = 100;
const MAX_USERS = 250;
/** More would block the event loop for too long. Allows 500 values for each of 100 users. */
const MAX_VALUES = 50_000;
/** A depth that recursive code, such as `JSON.stringify`, can handle. */
const MAX_DEPTH = 100;
const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** How long an answer may be: 16 KiB for each user of a page, of at least 100 and at most 250 users. */
export function maxPageBytes(perPage = USERS): number {
  return USER_BYTES * Math.min(Math.max(perPage, USERS), MAX_USERS);
}

/**
 * Reads a list answer: an envelope `{ success, data }` or a bare array, with or without paging headers.
 * @param mayBeBehind whether the page before may have been the last one: the service did not say
 * @throws `DebateSpaceRequestError`
 */
export function listedPage(reply: HttpReply, requested: ListUsersQuery, mayBeBehind = false): ListedPage {
  if (mayBeBehind && isBehindLast(reply))
    return { page: { users: [], page: requested.page ?? 1 }, follows: undefined };
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
  const page = count('current-page') ?? requested.page ?? 1;
  const perPage = requested.perPage ?? count('page-items');
  const totalPages = count('total-pages');
  const nextPage =
    count('next-page') ?? (totalPages !== undefined && page < totalPages ? page + 1 : undefined);
  // Ignores an unreadable header: better a page too many than a page too few.
  const isPaged = totalPages !== undefined || reply.header('next-page')?.trim() === '';
  const follows = nextPage !== undefined || (isPaged ? false : undefined);
  return { page: { users, page, perPage, total: count('total'), totalPages, nextPage }, follows };
}

/** Whether the service answers that the page does not exist. Other services send an empty page. */
function isBehindLast(reply: HttpReply): boolean {
  const { status } = reply;
  if (status === 400 || NOT_FOUND.has(status)) return strangerIn(reply) === undefined;
  if (status === 204) return true;
  const body = status === 200 && isReadable(reply.body) ? parsed(reply.body) : undefined;
  return body === null || (dataOf(body) === null && refusalIn(body) === undefined);
}

/** Whether parsing takes a bounded time: counts commas and brackets outside of strings. */
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
 * Makes a uid of a number's digits.
 * @throws `DebateSpaceRequestError` when JavaScript has rounded the number, which may then be the uid of another user
 */
function normalized(user: DebateSpaceUser, reply: HttpReply): DebateSpaceUser {
  // Otherwise it would become the prototype of a copy that the host makes.
  if (Object.hasOwn(user, '__proto__')) Reflect.deleteProperty(user, '__proto__');
  const uid: unknown = user.uid;
  if (typeof uid !== 'number') return user;
  if (Number.isSafeInteger(uid)) return { ...user, uid: String(uid) };
  throw unexpected(
    reply,
    'and the body has a number for a uid that JavaScript rounds or that has a fraction',
  );
}

/** The uid of an anonymized user is absent, `null` or empty. */
export function hasUid<U extends DebateSpaceUser>(user: U): user is U & { readonly uid: string } {
  return typeof user.uid === 'string' && user.uid !== '';
}

function wholeNumber(text = ''): number | undefined {
  return /^\s*\d{1,15}\s*$/.test(text) ? Number(text) : undefined;
}
