import { finished } from 'node:stream/promises';
import { CsvError, parse, type Options } from 'csv-parse';
import { Failure } from './failure.js';
import type { UidFormat } from './uid-format.js';
import { uidRow, type UidRow } from './uid-row.js';

type Cells = readonly string[];

interface TextRecord {
  readonly row: number;
  readonly cells: Cells;
}

/** What bounds the memory when a quote is never closed, or a line never ends. */
const MAX_ROW_BYTES = 1024 * 1024;

// A line is a record of one cell: the line end is found first.
const LINE: Options = { quote: null, delimiter: '\n' };

const formats: Record<
  UidFormat,
  { dialect: Options; rows: (records: AsyncIterable<TextRecord>, column: string) => AsyncGenerator<UidRow> }
> = {
  csv: { dialect: {}, rows: csvRows },
  ndjson: { dialect: LINE, rows: (records, column) => lineRows(records, (line) => memberOf(line, column)) },
  lines: { dialect: LINE, rows: (records) => lineRows(records, (line) => ({ uid: line })) },
};

/**
 * The rows of a text in UTF-8, a piece of it in memory at a time. Rows without any text are left out, and counted. The
 * source is destroyed at the end, and when the loop is left. `docs/examples/recipes/uids-of-file.ts` reads alike.
 * @param source pieces that may end anywhere
 * @param column of the uids in CSV, or the member of each object in NDJSON
 * @throws {Failure} where the text cannot be read on: UTF-16, a broken quote, a row above 1 MiB, not exactly one such
 *   column; what the source itself throws
 */
export function uidRows(
  source: AsyncIterable<Uint8Array>,
  format: UidFormat,
  column = 'uid',
): AsyncGenerator<UidRow> {
  const { dialect, rows } = formats[format];
  return rows(recordsOf(textOf(source), dialect), column);
}

/**
 * Bytes that are no UTF-8 become U+FFFD, which only a uid must not have. Not decoded by the parser: it would follow a byte
 * order mark of UTF-16.
 */
async function* textOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let isFirstLine = true;
  for await (const piece of source) {
    const text = decoder.decode(piece, { stream: true });
    if (isFirstLine && /^[^\r\n]*\0/.test(text))
      throw new Failure(
        'usage',
        'it is in UTF-16, or no text; hint: save it as "CSV UTF-8", or as text in UTF-8',
      );
    isFirstLine &&= !/[\r\n]/.test(text);
    yield text;
  }
  yield decoder.decode();
}

/**
 * The parser is fed a piece when the one before is used up, not piped into: so the source is never read ahead, ends as
 * any stream does that a loop leaves, and its listeners never meet the parser's error, which quotes the row.
 */
async function* recordsOf(text: AsyncIterable<string>, dialect: Options): AsyncGenerator<TextRecord> {
  const parser = parse({
    ...dialect,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    max_record_size: MAX_ROW_BYTES,
  });
  parser.on('error', () => undefined); // thrown below
  let row = 0;
  function* parsed(): Generator<TextRecord> {
    for (let cells: Cells | null; (cells = parser.read() as Cells | null) !== null;) {
      row += 1;
      if (cells.some((cell) => cell.trim() !== '')) yield { row, cells };
    }
  }
  try {
    for await (const piece of text) {
      parser.write(piece);
      yield* parsed();
      if (parser.errored) throw parser.errored;
    }
    await finished(parser.end(), { readable: false });
    yield* parsed();
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new Failure('usage', `row ${(error.records as number) + 1} cannot be read (${error.code})`);
  }
}

async function* csvRows(records: AsyncIterable<TextRecord>, column: string): AsyncGenerator<UidRow> {
  let header: Cells | undefined;
  for await (const { row, cells } of records) {
    if (header === undefined) header = withColumn(cells, column);
    else {
      const problem = problemOf(cells, header);
      yield problem === undefined ? decodedRow(row, cells[header.indexOf(column)]) : { row, problem };
    }
  }
  if (header === undefined) throw new Failure('usage', 'there is no header row: the text is empty');
}

/** Names no column: a list without a header row has uids there. */
function withColumn(header: Cells, column: string): Cells {
  if (/^sep=/i.test(header[0] ?? ''))
    throw new Failure(
      'usage',
      'there is a row "sep=" above the header row; hint: remove it, and separate columns with commas',
    );
  const count = header.filter((name) => name === column).length;
  if (count === 1) return header;
  const found = count === 0 ? `no column "${column}"` : `${count} columns "${column}"`;
  throw new Failure(
    'usage',
    `the header row has ${found} (columns: ${header.length}); hint: name the column of the uids with --column, exactly as it is written there, and separate columns with commas`,
  );
}

function problemOf(cells: Cells, header: Cells): string | undefined {
  if (cells.length !== header.length)
    return `it does not match the header row (cells: ${cells.length}, there: ${header.length})`;
  if (cells.every((cell) => header.includes(cell.replace(/^\uFEFF/, ''))))
    return 'it is a header row again, as where files were joined';
  return undefined;
}

async function* lineRows(
  records: AsyncIterable<TextRecord>,
  read: (line: string) => { uid: unknown } | { problem: string },
): AsyncGenerator<UidRow> {
  for await (const { row, cells } of records) {
    const found = read(cells[0] ?? '');
    yield 'problem' in found ? { row, problem: found.problem } : decodedRow(row, found.uid);
  }
}

function memberOf(line: string, column: string): { uid: unknown } | { problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { problem: 'it is not JSON' }; // the error would quote it
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { uid: value };
  const count = countMembers(line, column);
  if (count !== 1) return { problem: `it has ${count === 0 ? 'no' : count} ${column}` };
  return { uid: (value as Record<string, unknown>)[column] };
}

/** How many members of the object itself have this name: of two, `JSON.parse` takes the last one silently. */
function countMembers(object: string, name: string): number {
  let depth = 0;
  let count = 0;
  for (const [token, text, colon] of object.matchAll(/("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}[\]]/g)) {
    if (text !== undefined) count += colon && depth === 1 && JSON.parse(text) === name ? 1 : 0;
    else depth += token === '{' || token === '[' ? 1 : -1;
  }
  return count;
}

/** Text in another encoding would name somebody else, or nobody. */
function decodedRow(row: number, uid: unknown): UidRow {
  if (typeof uid === 'string' && uid.includes('\uFFFD')) return { row, problem: 'the uid is not in UTF-8' };
  return uidRow(row, uid);
}
