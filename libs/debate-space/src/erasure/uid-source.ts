import { ReadableStream } from 'node:stream/web';
import { uidRow, unreadable, type UidRow } from './uid-row.js';
import { isUidFormat, rowsOfText, type TextSource, type UidFormat } from './uid-text.js';

/**
 * Where a list of uids comes from: an array or another iterable of uids, an async iterable of uids, or – with a
 * `format` – text in UTF-8 as a stream of Node or of the web, or an async iterable of its pieces.
 */
export type UidSource = Iterable<string> | AsyncIterable<string | Uint8Array>;

export interface UidSourceOptions {
  /**
   * Of a stream of text, which needs one: `csv` – RFC 4180 with a header row; `ndjson` – on each line a JSON string,
   * or an object with the column; `lines` – on each line a uid. Rows without any text are left out.
   */
  readonly format?: UidFormat | undefined;
  /** The column of the uids in `csv`, or the member of each object in `ndjson`. Default: `uid`. */
  readonly column?: string | undefined;
}

export interface UidOfRow {
  readonly uid: string;
  readonly row: number;
}

/**
 * Every row of the list, those with no usable uid included. Never holds the list: of a stream, one piece is in memory,
 * and no more is read than is asked for. A stream is destroyed at the end, when the loop is left, and when a row cannot
 * be read.
 * @throws {InvalidArgumentError} at once for a source or options that make no list; from the loop where a text cannot
 * be read on (a broken quote in CSV, a row above 1 MiB, no such column). What the source throws comes as it is.
 */
export function readRows(
  source: UidSource,
  { format, column = 'uid' }: UidSourceOptions = {},
): AsyncGenerator<UidRow> {
  if (format !== undefined && !isUidFormat(format))
    throw unreadable("format must be 'csv', 'ndjson' or 'lines'");
  if (typeof column !== 'string' || column === '') throw unreadable('column must be the name of a column');
  if (typeof source === 'string' || ArrayBuffer.isView(source))
    throw unreadable('give the uids in an array, or the text as a stream with its format');
  const iterable = Object(source) as Partial<TextSource & Iterable<string>>;
  if (Symbol.asyncIterator in iterable) {
    if (format !== undefined) return rowsOfText(iterable as TextSource, format, column);
    if (isStreamOfText(iterable)) throw unreadable(FORMAT_NEEDED);
  } else if (!(Symbol.iterator in iterable)) {
    throw unreadable('the source must be an array of uids, another iterable, or a stream');
  } else if (format !== undefined) {
    throw unreadable('an array has uids, not text: leave format away, or give the text as a stream');
  }
  return rowsOfUids(source);
}

/**
 * The uids of the list, as {@link readRows} reads it.
 * @throws {InvalidArgumentError} what `readRows` throws, and from the loop for a row with no usable uid: says which row,
 * and what is wrong with it
 */
export function readUids(source: UidSource, options?: UidSourceOptions): AsyncGenerator<UidOfRow> {
  return uidsOf(readRows(source, options));
}

async function* uidsOf(rows: AsyncIterable<UidRow>): AsyncGenerator<UidOfRow> {
  for await (const { row, uid, problem } of rows) {
    if (problem !== undefined) throw unreadable(`row ${row}: ${problem}`);
    yield { uid, row };
  }
}

const FORMAT_NEEDED = "a stream of text or bytes needs a format: 'csv', 'ndjson' or 'lines'";

async function* rowsOfUids(source: UidSource): AsyncGenerator<UidRow> {
  let row = 0;
  for await (const uid of source) {
    if (uid instanceof Uint8Array) throw unreadable(FORMAT_NEEDED);
    row += 1;
    yield uidRow(row, uid);
  }
}

/** Whether it gives a text in pieces, be they strings: a stream of Node outside object mode, or one of the web. */
function isStreamOfText(source: object): boolean {
  return (
    source instanceof ReadableStream ||
    ('readableObjectMode' in source && source.readableObjectMode === false)
  );
}
