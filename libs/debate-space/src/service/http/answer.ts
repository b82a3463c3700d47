import { UnexpectedResponseError, type DebateSpaceRequestError } from '../../errors.js';
import { SHORT_BYTES, type HttpReply } from './exchange.js';
import { meaningOf, statusText, type Contradiction, type Said, type StatusMeanings } from './status-table.js';

/** How a web page begins: with what no service would name the root of its XML after. */
const PAGE =
  /^<(!doctype\s+html|html|head|body|h[1-6]|p|div|center|br|hr|meta|style|script|noscript|table|form|iframe|img)(?=[\s/>])/i;
const BEFORE_CONTENT = /^(\s|<!--[^]*?-->|<\?[^]*?\?>)+/;
/** The no of the service, also nested, given twice, or in XML, a form or an event stream. */
const NO = /\bsuccess["']?\s{0,9}[:=>]{1,2}\s{0,9}["']?(?:false|0|no)\b/i;
/** Bodies of these types may be plain text, of which nothing more is known. */
const TEXT =
  /^\s*(?:$|text\/(?:plain|html|xml)\b|application\/(?:octet-stream|(?:[\w.-]{1,80}\+)?(?:json|xml))\b)/i;

/**
 * Reads the status of an answer, and its body as far as it shows that somebody else than the service answers.
 * @param special what some statuses mean for this call
 * @param contradiction what the body says
 * @throws `DebateSpaceRequestError` unless it is done. Whatever is not the service's own no may be repeated.
 */
export function assertSuccess(
  reply: HttpReply,
  special: StatusMeanings = {},
  contradiction: Contradiction | undefined = strangerIn(reply),
): void {
  const { operation, status, retryAfterMs } = reply;
  const said: Said = { status, contradiction };
  const { verdict, error: ErrorClass, text, hint = '', outcome = 'refused' } = meaningOf(said, special);
  if (verdict === 'done') return;
  const later = { repeat: 'later', retryAfterMs } as const;
  const isRefused = verdict === 'refused' || verdict === 'denied';
  const details = { operation, outcome, status, ...(!isRefused && later) };
  throw new ErrorClass(`${text} (${statusText(said)})${hint}`, details);
}

/** A 2xx that is not of the interface. Repeating may help: such answers come from whatever stands between. */
export function unexpected({ operation, status }: HttpReply, problem: string): DebateSpaceRequestError {
  const message = `the service answered ${status}, ${problem}`;
  return new UnexpectedResponseError(message, { operation, outcome: 'unknown', status, repeat: 'later' });
}

/**
 * The body of an answer that has to be JSON; `undefined` when it is empty.
 * @throws {@link UnexpectedResponseError} when it is not JSON
 */
export function jsonBody(reply: HttpReply): unknown {
  const value = parsed(reply.body);
  if (value === undefined && reply.body?.trim() !== '')
    throw unexpected(reply, 'and the body is not whole JSON');
  return value;
}

/** The body of an answer that may be anything; `undefined` when it is not JSON. */
export function parsed(body = ''): unknown {
  const text = body.trim();
  if (!/^[{["tfn\d-]/.test(text)) return undefined; // an exception costs more
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** How JSON says no; `undefined` when it does not. */
export function refusalIn(value: unknown): Contradiction | undefined {
  const { success, error, errors } = Object(value) as Readonly<Record<string, unknown>>;
  if (value === false || [false, 0, 'false', '0'].includes(success as never)) return 'success: false';
  return isFilled(error) || isFilled(errors) ? 'an error' : undefined;
}

/** Of a route whose body the interface does not show: whatever does not contradict means what the status says. */
export function contradictionOf(reply: HttpReply): Contradiction | undefined {
  const { status, body = '' } = reply;
  const stranger = strangerIn(reply);
  if (stranger !== undefined || status < 200 || status > 299) return stranger;
  const value = parsed(body);
  if (NO.test(body)) return 'success: false';
  const isText = value !== undefined || (TEXT.test(typeOf(reply)) && !/^\s*[{[\uFFFD]/.test(body));
  return isText || body.trim() === '' ? refusalIn(value) : 'an unreadable body';
}

/** What shows that somebody else than the service answers, or something in between has spoiled the answer. */
export function strangerIn(reply: HttpReply): Contradiction | undefined {
  if (reply.body === undefined) return 'an unreadable body';
  return isWebPage(reply.body, typeOf(reply)) ? 'a web page' : undefined;
}

/** XML is not a web page. Neither is JSON or plain text that PHP sends as `text/html`. */
function isWebPage(body: string, type: string): boolean {
  const start = body.trimStart().slice(0, SHORT_BYTES);
  if (PAGE.test(start.replace(BEFORE_CONTENT, ''))) return true;
  return /^\s*text\/html\b/i.test(type) && /<[a-z][^<>]*>/i.test(start) && !/^(?:<\?xml|[{["])/i.test(start);
}

function typeOf(reply: HttpReply): string {
  return reply.header('content-type') ?? '';
}

/** Many services name an empty `errors` in every answer. */
function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}
