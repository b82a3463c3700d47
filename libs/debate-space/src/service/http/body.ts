import { isAnyArrayBuffer } from 'node:util/types';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions } from 'node:zlib';
import { TOO_LARGE, type RawReply } from './exchange.js';

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
/** Of ASCII: nobody writes them, and JSON (RFC 8259) has them as escapes only. */
const CONTROL = /(?![\t\n\v\f\r\u007F-\u009F])\p{Cc}/u;
/** Enough to tell text from bytes. */
const CHECKED_LENGTH = 64 * 1024;

/**
 * The text of an answer's body: its codings are undone, and its charset is decoded, in the same way for every adapter.
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

/** Bytes that cannot be decoded stay: `fetch` has decoded them, and leaves the header. Bytes of a coding are no text. */
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
  const mark = bytes.subarray(0, 2).toString('hex'); // a byte order mark precedes the header (WHATWG Encoding, section 6)
  const label = { fffe: 'utf-16le', feff: 'utf-16be' }[mark] ?? LABEL.exec(contentType)?.[1] ?? 'utf-8';
  try {
    const text = new TextDecoder(label).decode(bytes);
    return CONTROL.test(text.slice(0, CHECKED_LENGTH)) ? undefined : text;
  } catch {
    return undefined; // an unknown charset
  }
}

/** An adapter of the host's may give text, or JSON that it has parsed. */
function textOf(data: unknown): string | undefined {
  if (data === undefined || data === null) return '';
  if (typeof data === 'string') return CONTROL.test(data.slice(0, CHECKED_LENGTH)) ? undefined : data;
  try {
    return JSON.stringify(data);
  } catch {
    return undefined; // it is nested too deeply
  }
}

function bounded(text: string | undefined, maxBytes: number): string | undefined {
  if (Buffer.byteLength(text ?? '') > maxBytes) throw tooLarge();
  return text;
}

function tooLarge(): Error {
  return Object.assign(new Error('the response is too large'), { code: TOO_LARGE });
}
