import { z } from 'zod';
import { RefusedError } from '../errors.js';
import { jsonBody, unexpected, type Attempt } from './attempt.js';
import type { HttpReply } from './transport.js';

/**
 * A user as the service lists it (service-interface.md, section 4.4). The interface does not show the record's fields;
 * these are the ones known from deployed services. All others are kept as they come.
 */
export interface DebateSpaceUser {
  /** Absent or null for an anonymised user. */
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
  /** Users per page, as asked for or as the service says. */
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
}

const records = z.array(z.record(z.string(), z.unknown()));
const envelope = z.object({ success: z.boolean().optional(), data: records });

/** Reads a list answer: an envelope `{ success, data }` or a bare array, with or without paging headers. */
export function listedPage(reply: HttpReply, asked: { page: number; perPage?: number }): Attempt<ListedPage> {
  const json = jsonBody(reply);
  if ('failure' in json) return json;
  if (saysNo(json.value)) return refused(reply);
  const parsed = Array.isArray(json.value) ? records.safeParse(json.value) : dataOf(json.value);
  if (!parsed.success)
    return unexpected(reply, json.value === undefined ? 'is empty' : 'is not a list of users');

  const total = wholeNumber(reply, 'total');
  const totalPages = wholeNumber(reply, 'total-pages');
  const page = wholeNumber(reply, 'current-page') ?? asked.page;
  const links = pageLinks(reply.header('link') ?? '');
  const next = wholeNumber(reply, 'next-page') ?? links.get('next');
  // An unreadable header says nothing: a page too many is asked for rather than one too few.
  const paged = links.size > 0 || totalPages !== undefined || reply.header('next-page')?.trim() === '';
  const nextPage = next ?? (totalPages !== undefined && page < totalPages ? page + 1 : undefined);
  const perPage = asked.perPage ?? wholeNumber(reply, 'page-items');
  return {
    value: {
      page: { users: parsed.data, page, perPage, total, totalPages, nextPage },
      last: paged && nextPage === undefined && !links.has('next'),
    },
  };
}

/** A body with `success: false`, whatever the status says. */
export function saysNo(body: unknown): boolean {
  return typeof body === 'object' && body !== null && (body as { success?: unknown }).success === false;
}

export function refused(reply: HttpReply): Attempt<never> {
  const message = `the service answered ${reply.status} with success: false`;
  return { failure: { error: RefusedError, message, status: reply.status, outcome: 'refused', retry: 'no' } };
}

function dataOf(body: unknown): ReturnType<typeof records.safeParse> {
  const parsed = envelope.safeParse(body);
  return parsed.success ? records.safeParse(parsed.data.data) : records.safeParse(undefined);
}

function wholeNumber(reply: HttpReply, header: string): number | undefined {
  const text = reply.header(header)?.trim();
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * The pages that a `Link` header (RFC 8288) leads to, by relation; `undefined` where the address does not say. Other
 * links, such as a `preconnect`, are no pages.
 */
function pageLinks(header: string): ReadonlyMap<string, number | undefined> {
  const links = new Map<string, number | undefined>();
  for (const [, target = '', parameters = ''] of header.matchAll(/<([^>]*)>([^<]*)/g)) {
    const relations = /;\s*rel\s*=\s*"?([^";,]*)/i.exec(parameters)?.[1] ?? '';
    const page = /[?&]page=(\d{1,15})/.exec(target)?.[1];
    for (const relation of relations.toLowerCase().split(/\s+/)) {
      if (!['first', 'prev', 'next', 'last'].includes(relation)) continue;
      links.set(relation, page === undefined ? undefined : Number(page));
    }
  }
  return links;
}
