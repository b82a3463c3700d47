import { RefusedError, UnexpectedResponseError } from '../../errors.js';
import {
  meaningOf,
  statusText,
  type Contradiction,
  type Meaning,
  type Said,
  type StatusMeanings,
} from './status-table.js';
import type { HttpReply } from './exchange.js';
import { Failure } from './failure.js';

/** How a web page begins: with what no service would name the root of its XML after. */
const PAGE = /^<(!doctype\s+html|html|head|body|h[1-6]|p|div|center|br|hr)(?=[\s/>])/i;
const BEFORE_CONTENT = /^(\s|<!--[^]*?-->|<\?[^]*?\?>)+/;

/**
 * The failure of a call that is answered like this. Whatever is not the service's own no may be repeated.
 * @param said what the message says in parentheses
 */
export function failureOf(meaning: Meaning, { status, retryAfterMs }: HttpReply, said: string): Failure {
  const { verdict, error, text, hint = '', outcome = 'refused' } = meaning;
  const isRefused = verdict === 'refused' || verdict === 'denied';
  return new Failure(error, `${text} (${said})${hint}`, {
    outcome,
    retry: isRefused ? 'no' : 'later',
    status,
    retryAfterMs: isRefused ? undefined : retryAfterMs,
  });
}

/**
 * @param special what some statuses mean for this call
 * @throws {@link Failure} when the status is not 2xx, or the body is a web page
 */
export function assertSuccess(reply: HttpReply, special: StatusMeanings = {}): void {
  const said: Said = { status: reply.status, contradiction: isWebPage(reply) ? 'a web page' : undefined };
  const meaning = meaningOf(said, special);
  if (meaning.verdict !== 'done') throw failureOf(meaning, reply, statusText(said));
}

/** A 2xx with a body that is not of the interface. Repeating may help: such pages come from whatever stands between. */
export function unexpected({ status }: HttpReply, problem: string): Failure {
  const message = `the service answered ${status} and the body ${problem}`;
  return new Failure(UnexpectedResponseError, message, { outcome: 'unknown', retry: 'later', status });
}

/**
 * The body of an answer that has to be JSON; `undefined` when it is empty.
 * @throws {@link Failure} when it is none
 */
export function jsonBody(reply: HttpReply): unknown {
  const value = parsed(reply.body);
  if (value === undefined && reply.body.trim() !== '') throw unexpected(reply, 'is not whole JSON');
  return value;
}

/** The body of an answer that may be anything; `undefined` when it is no JSON. A byte order mark does no harm. */
export function parsed(body: string): unknown {
  const text = body.trim();
  if (!/^[{["tfn\d-]/.test(text)) return undefined; // an exception costs more
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** How JSON says no; `undefined` when it does not. */
export function refusalIn(value: unknown): 'success: false' | 'an error' | undefined {
  if (saysNo(value)) return 'success: false';
  const { error, errors } = Object(value) as { error?: unknown; errors?: unknown };
  return isFilled(error) || isFilled(errors) ? 'an error' : undefined;
}

/** @throws {@link Failure} when the body of a 2xx says no */
export function assertAccepted(reply: HttpReply, value: unknown): void {
  const refusal = refusalIn(value);
  if (refusal === undefined) return;
  const message = `the service answered ${reply.status} with ${refusal}`;
  throw new Failure(RefusedError, message, { outcome: 'refused', status: reply.status });
}

/** Of a route whose body the interface does not show: everything else means what the status says. */
export function contradictionOf(reply: HttpReply): Contradiction | undefined {
  if (isWebPage(reply)) return 'a web page';
  const isDone = reply.status >= 200 && reply.status < 300;
  return isDone && saysNo(parsed(reply.body)) ? 'success: false' : undefined;
}

/** XML is no web page, nor is JSON or plain text that is sent as `text/html`, as PHP does. */
export function isWebPage(reply: HttpReply): boolean {
  const start = reply.body.slice(0, 4_000);
  if (PAGE.test(start.replace(BEFORE_CONTENT, ''))) return true;
  const isHtml = /^\s*text\/html\b/i.test(reply.header('content-type') ?? '');
  return isHtml && /<[a-z][^<>]*>/i.test(start) && !/^\s*(<\?xml|[{["])/i.test(start);
}

function saysNo(value: unknown): boolean {
  const { success } = Object(value) as { success?: unknown };
  return value === false || success === false || success === 0 || success === 'false' || success === '0';
}

/** Many services name an empty `errors` in every answer. */
function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}
