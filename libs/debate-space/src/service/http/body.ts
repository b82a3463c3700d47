import { isAnyArrayBuffer } from 'node:util/types';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions } from 'node:zlib';
import { SHORT_BYTES, TOO_LARGE, type HttpReply, type RawReply } from './exchange.js';

type Decode = (bytes: Buffer, options: ZlibOptions) => Promise<Buffer>;

const MAX_CODINGS = 4;
const DECODERS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['br', promisify(brotliDecompress)],
  // With the header of zlib (RFC 9110, section 8.4.1.2), or without it, as some servers send it.
  [
    'deflate',
    (bytes: Buffer, options) =>
      promisify((bytes.at(0) ?? 0) % 16 === 8 ? inflate : inflateRaw)(bytes, options),
  ],
]);
const LABEL = /;\s*charset\s*=\s*["']?([^\s;"']+)/i;
/** Control characters of ASCII. Texts do not contain them, and JSON (RFC 8259) escapes them. */
const CONTROL = /(?![\t\n\v\f\r\u007F-\u009F])\p{Cc}/u;
/** Enough characters to tell text from bytes. */
const CHECKED_LENGTH = 64 * 1024;

/**
 * Decodes the codings and the charset of an answer's body, for every adapter in the same way.
 * @param header joins repeated headers with commas
 * @returns `undefined` when the body cannot be read as text
 * @throws an error with the code {@link TOO_LARGE}
 */
export async function bodyText(
  data: RawReply['data'],
  header: (name: string) => string | undefined,
  maxBytes: number,
): Promise<string | undefined> {
  const given = isAnyArrayBuffer(data) ? new Uint8Array(data) : data;
  if (!ArrayBuffer.isView(given)) return bounded(textOf(given), maxBytes);
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  if (bytes.length > maxBytes) throw tooLarge();
  const whole = await decoded(bytes, header('content-encoding'), maxBytes);
  return textIn(whole, header('content-type'));
}

/** Keeps bytes that it cannot decode: `fetch` decodes the body, but leaves the header. `textIn` refuses encoded bytes. */
async function decoded(bytes: Buffer, contentEncoding = '', maxOutputLength: number): Promise<Buffer> {
  const codings = contentEncoding.toLowerCase().split(/[\s,]+/);
  const known = codings.filter((coding) => coding !== '' && coding !== 'identity');
  if (bytes.length === 0 || known.length > MAX_CODINGS) return bytes;
  let whole = bytes;
  for (const coding of known.reverse()) {
    try {
      whole = (await DECODERS.get(coding)?.(whole, { maxOutputLength })) ?? whole;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === TOO_LARGE) throw error;
      return bytes;
    }
  }
  return whole;
}

function textIn(bytes: Buffer, contentType = ''): string | undefined {
  const mark = bytes.subarray(0, 2).toString('hex'); // a byte order mark outweighs the header (WHATWG Encoding, section 6)
  const label = { fffe: 'utf-16le', feff: 'utf-16be' }[mark] ?? LABEL.exec(contentType)?.[1] ?? 'utf-8';
  try {
    const text = new TextDecoder(label).decode(bytes);
    return CONTROL.test(text.slice(0, CHECKED_LENGTH)) ? undefined : text;
  } catch {
    return undefined; // an unknown charset
  }
}

/** For an adapter of the host that returns text, or parsed JSON. */
function textOf(data: unknown): string | undefined {
  if (data === undefined || data === null) return '';
  if (typeof data === 'string') return CONTROL.test(data.slice(0, CHECKED_LENGTH)) ? undefined : data;
  try {
    return JSON.stringify(data);
  } catch {
    return undefined; // nested too deeply
  }
}

function bounded(text: string | undefined, maxBytes: number): string | undefined {
  if (Buffer.byteLength(text ?? '') > maxBytes) throw tooLarge();
  return text;
}

function tooLarge(): Error {
  return Object.assign(new Error('the response is too large'), { code: TOO_LARGE });
}

/**
 * How the body of an answer contradicts its status. `an unreadable body`: its coding, charset, type or JSON cannot be read.
 */
export type Contradiction = 'a web page' | 'an unreadable body' | 'success: false' | 'an error';

/** The beginning of a web page: elements that a service would not choose for the root of its XML. */
const PAGE =
  /^<(!doctype\s+html|html|head|body|h[1-6]|p|div|center|br|hr|meta|style|script|noscript|table|form|iframe|img)(?=[\s/>])/i;
const BEFORE_CONTENT = /^(\s|<!--[^]*?-->|<\?[^]*?\?>)+/;
/** `success: false`, also nested, repeated, or in XML, a form or an event stream. */
const NO = /\bsuccess["']?\s{0,9}[:=>]{1,2}\s{0,9}["']?(?:false|0|no)\b/i;
/** Bodies of these types may be plain text without a known form. */
const TEXT =
  /^\s*(?:$|text\/(?:plain|html|xml)\b|application\/(?:octet-stream|(?:[\w.-]{1,80}\+)?(?:json|xml))\b)/i;

/** Parses a body that may be anything; `undefined` when it is not JSON. */
export function parsed(body = ''): unknown {
  const text = body.trim();
  if (!/^[{["tfn\d-]/.test(text)) return undefined; // cheaper than the exception of JSON.parse
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** How parsed JSON contradicts a success; `undefined` when it does not. */
export function refusalIn(value: unknown): Contradiction | undefined {
  const { success, error, errors } = Object(value) as Readonly<Record<string, unknown>>;
  if (value === false || [false, 0, 'false', '0'].includes(success as never)) return 'success: false';
  return isFilled(error) || isFilled(errors) ? 'an error' : undefined;
}

/** For routes whose body the interface does not show: any body that does not contradict the status is accepted. */
export function contradictionOf(reply: HttpReply): Contradiction | undefined {
  const { status, body = '' } = reply;
  const stranger = strangerIn(reply);
  if (stranger !== undefined || status < 200 || status > 299) return stranger;
  const value = parsed(body);
  if (NO.test(body)) return 'success: false';
  const isText = value !== undefined || (TEXT.test(typeOf(reply)) && !/^\s*[{[\uFFFD]/.test(body));
  return isText || body.trim() === '' ? refusalIn(value) : 'an unreadable body';
}

/** How the body shows that something else than the service answers, or that a proxy has spoiled the answer. */
export function strangerIn(reply: HttpReply): Contradiction | undefined {
  if (reply.body === undefined) return 'an unreadable body';
  return isWebPage(reply.body, typeOf(reply)) ? 'a web page' : undefined;
}

/** XML is not a web page, nor is JSON or plain text that PHP sends as `text/html`. */
function isWebPage(body: string, type: string): boolean {
  const start = body.trimStart().slice(0, SHORT_BYTES);
  if (PAGE.test(start.replace(BEFORE_CONTENT, ''))) return true;
  return /^\s*text\/html\b/i.test(type) && /<[a-z][^<>]*>/i.test(start) && !/^(?:<\?xml|[{["])/i.test(start);
}

function typeOf(reply: HttpReply): string {
  return reply.header('content-type') ?? '';
}

/** Many services send an empty `errors` with every answer. */
function isFilled(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}
