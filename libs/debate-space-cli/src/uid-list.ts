import { UID_FORMATS, type UidFormat } from './uid-format.js';
import { namedUid } from 'nestjs-debate-space/internal';
import { open } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { codeOf, Failure } from './failure.js';
import type { CliIo } from './cli-context.js';
import { finished } from 'node:stream/promises';
import { CsvError, parse, type Options } from 'csv-parse';

/**
 * One row of a list of uids: a uid, or why there is none, in words that do not repeat the row. Rows are counted from 1;
 * in CSV the header row is row 1, as in a spreadsheet.
 */
export type UidRow =
  | { readonly row: number; readonly uid: string; readonly problem?: undefined }
  | { readonly row: number; readonly uid?: undefined; readonly problem: string };

export function uidRow(row: number, value: unknown): UidRow {
  const uid = namedUid(value);
  return typeof uid === 'string' ? { row, uid } : { row, problem: `the uid ${uid.problem}` };
}

/** Where the uids come from. */
export interface UidListOptions {
  /** Named on the command line. */
  readonly uids: readonly string[];
  /** A file, or `-` for stdin. */
  readonly file?: string;
  /** Default: by the file's extension. */
  readonly format?: string;
  readonly column?: string;
}

export type UidRows = Iterable<UidRow> | AsyncIterable<UidRow>;

export interface UidList {
  /** For messages; none for uids of the command line. */
  readonly name?: string;
  readonly isStdin: boolean;
  /** Reads the list from its beginning; each call reads the file again. @throws {Failure} when it cannot be opened */
  open(): Promise<UidRows>;
}

/** A row takes about 100 bytes, with a UUID for its uid. */
const MAX_SNAPSHOT_ROWS = 5_000_000;

const formatByExtension: Readonly<Record<string, UidFormat>> = {
  '.csv': 'csv',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.txt': 'lines',
};

/** @throws {Failure} when it is not said where the uids are, or in which format */
export function uidList({ uids, file, format, column }: UidListOptions, io: CliIo): UidList {
  if ((file === undefined) === (uids.length === 0)) {
    throw new Failure('usage', 'Name the users by their uids, or by --file <file>.');
  }
  if (file === undefined) {
    if (format !== undefined || column !== undefined)
      throw new Failure('usage', '--format and --column belong to --file.');
    return { isStdin: false, open: () => Promise.resolve(uids.map((uid, n) => uidRow(n + 1, uid))) };
  }
  const known = UID_FORMATS.find(
    (each) => each === (format ?? formatByExtension[extname(file).toLowerCase()]),
  );
  if (known === undefined) {
    throw new Failure('usage', `The format of ${file} is not known: add --format ${UID_FORMATS.join('|')}.`);
  }
  const isStdin = file === '-';
  const path = resolve(io.folder, file);
  return {
    name: nameOf(file),
    isStdin,
    open: async () => {
      const text = isStdin ? io.stdin : (await opened(path)).createReadStream();
      // Ended by an interruption even while it waits for what comes next.
      return named(file, uidRows(addAbortSignal(io.interrupted, text), known, column));
    },
  };
}

/**
 * The rows of a list, read once and held in memory: whatever becomes of the file – it grows, it is replaced, it is a
 * pipe –, these stay. Not in a temporary file, which a killed process would leave on the disk.
 * @throws {Failure} when the list cannot be read, or has more than `maxRows`
 */
export async function snapshotOf(list: UidList, maxRows = MAX_SNAPSHOT_ROWS): Promise<readonly UidRow[]> {
  const rows: UidRow[] = [];
  for await (const row of await list.open()) {
    if (rows.push(row) <= maxRows) continue;
    throw new Failure(
      'failed',
      `The list has more than ${maxRows} users, too many to hold until you confirm it: split it, or give --yes.`,
    );
  }
  return rows;
}

/**
 * The uids of the rows.
 * @param name of the list, for the message
 * @throws {Failure} from the loop, at the first row without one, with the row's number
 */
export async function* uidsOf(rows: UidRows, name?: string): AsyncGenerator<string> {
  for await (const { row, uid, problem } of rows) {
    if (problem !== undefined)
      throw new Failure('usage', `${name === undefined ? '' : `${name}: `}row ${row}: ${problem}`);
    yield uid;
  }
}

/** What is wrong with the rows, with the file that they are in. */
async function* named(file: string, rows: AsyncIterable<UidRow>): AsyncGenerator<UidRow> {
  try {
    yield* rows;
  } catch (error) {
    throw error instanceof Failure ? new Failure('usage', `${nameOf(file)}: ${error.message}`) : error;
  }
}

function nameOf(file: string): string {
  return file === '-' ? 'stdin' : file;
}

async function opened(path: string) {
  try {
    return await open(path);
  } catch (error) {
    throw new Failure('failed', `${path} cannot be read (${codeOf(error)}).`);
  }
}

type Cells = readonly string[];

interface TextRecord {
  readonly row: number;
  readonly cells: Cells;
}

/** What bounds the memory when a quote is never closed, or a line never ends. */
const MAX_ROW_BYTES = 1024 * 1024;

/** A line is a record of one cell: the line end is found first. */
const LINE: Options = { quote: null, delimiter: '\n' };

/**
 * The rows of a text in UTF-8, a piece of it in memory at a time. Rows without any text are left out, and counted. The
 * source is destroyed at the end, and when the loop is left. `docs/examples/recipes/uids-of-file.ts` reads alike.
 * @param source pieces that may end anywhere
 * @param column of the uids in CSV, or the member of each object in NDJSON
 * @throws {Failure} where the text cannot be read on: UTF-16, a broken quote, a row above 1 MiB, not exactly one such
 *   column; what the source itself throws
 */
export async function* uidRows(
  source: AsyncIterable<Uint8Array>,
  format: UidFormat,
  column = 'uid',
): AsyncGenerator<UidRow> {
  let header: Cells | undefined;
  for await (const { row, cells } of recordsOf(source, format === 'csv' ? {} : LINE)) {
    const [line = ''] = cells;
    if (format === 'lines') yield decodedRow(row, line);
    else if (format === 'ndjson') yield memberOf(row, line, column);
    else if (header === undefined) header = withColumn(cells, column);
    else yield cellOf(row, cells, header, column);
  }
  if (format === 'csv' && header === undefined)
    throw new Failure('usage', 'there is no header row: the text is empty');
}

/** Bytes that are no UTF-8 become U+FFFD, which a uid must not have. */
async function* textOf(source: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let isFirstLine = true;
  for await (const piece of source) {
    const text = decoder.decode(piece, { stream: true });
    if (isFirstLine && /^[^\r\n]*\0/.test(text)) {
      const hint = 'hint: save it as "CSV UTF-8", or as text in UTF-8';
      throw new Failure('usage', `it is in UTF-16, or no text; ${hint}`);
    }
    isFirstLine &&= !/[\r\n]/.test(text);
    yield text;
  }
  yield decoder.decode();
}

/** Fed a piece at a time, and not piped into: the parser's error, which quotes the row, then meets no other listener. */
async function* recordsOf(source: AsyncIterable<Uint8Array>, dialect: Options): AsyncGenerator<TextRecord> {
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
    for await (const piece of textOf(source)) {
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

/** @throws {Failure} unless there is exactly one such column */
function withColumn(header: Cells, column: string): Cells {
  if (/^sep=/i.test(header[0] ?? '')) {
    const hint = 'hint: remove it, and separate columns with commas';
    throw new Failure('usage', `there is a row "sep=" above the header row; ${hint}`);
  }
  const count = header.filter((name) => name === column).length;
  if (count === 1) return header;
  const found = count === 0 ? `no column "${column}"` : `${count} columns "${column}"`;
  throw new Failure(
    'usage',
    `the header row has ${found} (columns: ${header.length}); hint: name the column of the uids with --column, exactly as it is written there, and separate columns with commas`,
  );
}

function cellOf(row: number, cells: Cells, header: Cells, column: string): UidRow {
  if (cells.length !== header.length)
    return {
      row,
      problem: `it does not match the header row (cells: ${cells.length}, there: ${header.length})`,
    };
  if (cells.every((cell) => header.includes(cell.replace(/^\uFEFF/, ''))))
    return { row, problem: 'it is a header row again, as where files were joined' };
  return decodedRow(row, cells[header.indexOf(column)]);
}

function memberOf(row: number, line: string, column: string): UidRow {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { row, problem: 'it is not JSON' }; // the error would quote it
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return decodedRow(row, value);
  if (!Object.hasOwn(value, column)) return { row, problem: `it has no ${column}` };
  return decodedRow(row, (value as Record<string, unknown>)[column]);
}

/** Text in another encoding would name somebody else, or nobody. */
function decodedRow(row: number, uid: unknown): UidRow {
  if (typeof uid === 'string' && uid.includes('\uFFFD')) return { row, problem: 'the uid is not in UTF-8' };
  return uidRow(row, uid);
}
