import { open } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { CliIo } from './cli-context.js';
import { withoutFormulaMark } from './csv-cells.js';
import { codeOf, Failure } from './failure.js';
import { shown } from './output.js';

export const UID_FORMATS = ['csv', 'lines', 'ndjson'] as const;
const EXTENSIONS: Readonly<Record<string, (typeof UID_FORMATS)[number] | undefined>> = {
  '.csv': 'csv',
  '.txt': 'lines',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
};

/** Where the uids come from: the command line, or in place of it a file; `-` is stdin. */
export interface UidListOptions {
  readonly uids?: readonly string[];
  readonly file?: string;
  /** Default: by the extension of the file. */
  readonly format?: (typeof UID_FORMATS)[number];
  /** Of a CSV, or the field of NDJSON. Default: `uid`. */
  readonly column?: string;
}

/** The distinct uids, each with the number of its first line. */
export type UidList = ReadonlyMap<string, number>;

type Source = Pick<CliIo, 'folder' | 'stdin' | 'interrupted'>;
/** Lines are counted from 1, as an editor does; a CSV has its header on line 1. */
type Line = readonly [number: number, uid: unknown];

const MAX_PROBLEMS = 20;
const NO_UID = 'it has no uid, as the line of an anonymized user: remove it';
/** As a spreadsheet writes a long number: another user, or nobody. */
const ROUNDED = /^[+-]?\d+(?:[.,]\d+)?e\+\d+$/i;

/**
 * Reads the whole list before anything is done with it: a list with a mistake has no effect, and what becomes of the file
 * afterwards changes nothing.
 * @throws {Failure} when the list cannot be read, is empty, or has a line without a valid uid; never shows what is in a line
 */
export async function readUids(options: UidListOptions, io: Source): Promise<UidList> {
  const { uids = [], file, format, column } = options;
  if ((file === undefined) === (uids.length === 0))
    throw new Failure('usage', 'Name the users by their uids, or by --file <file>.');
  if (file === undefined && (format !== undefined || column !== undefined))
    throw new Failure('usage', '--format and --column belong to --file.');
  const place = file === undefined ? 'the command line' : file === '-' ? 'stdin' : shown(file);
  const given = file === undefined ? numbered(uids) : await linesOf(file, place, options, io);
  if (given.length === 0) throw new Failure('usage', `${place} has no uids. Nothing was requested.`);
  const { namedUid } = await import('nestjs-debate-space/internal');
  const lines = new Map<string, number>();
  const problems: string[] = [];
  for (const [number, value] of given) {
    const uid = namedUid(value);
    if (value === undefined || value === null || value === '')
      problems.push(`${place}: line ${number}: ${NO_UID}`);
    else if (typeof uid !== 'string') problems.push(`${place}: line ${number}: the uid ${uid.problem}`);
    else if (file !== undefined && ROUNDED.test(uid) && typeOf(options) !== 'ndjson')
      problems.push(`${place}: line ${number}: the uid is a number that a spreadsheet has rounded`);
    else if (!lines.has(uid)) lines.set(uid, number);
  }
  if (problems.length > MAX_PROBLEMS)
    problems.splice(MAX_PROBLEMS, Infinity, `… and ${problems.length - MAX_PROBLEMS} more lines`);
  if (problems.length > 0) throw new Failure('usage', `${problems.join('\n')}\nNothing was requested.`);
  return lines;
}

async function linesOf(
  file: string,
  place: string,
  { format, column }: UidListOptions,
  io: Source,
): Promise<readonly Line[]> {
  const known = typeOf({ file, format });
  if (known === undefined)
    throw new Failure('usage', `The format of ${place} is unknown: add --format ${UID_FORMATS.join('|')}.`);
  if (known === 'lines' && column !== undefined)
    throw new Failure('usage', '--column belongs to a CSV or to NDJSON.');
  const text = await textOf(file, place, io);
  if (known === 'csv') return csvLines(text, place, column);
  if (known === 'ndjson') return ndjsonLines(text, place, column);
  return numbered(text.split(/\r\n|\n|\r/)).filter(([, uid]) => uid.trim() !== '');
}

function typeOf({ file = '', format }: UidListOptions): UidListOptions['format'] {
  return format ?? EXTENSIONS[extname(file).toLowerCase()];
}

function numbered(uids: readonly string[]): (readonly [number: number, uid: string])[] {
  return uids.map((uid, n) => [n + 1, uid]);
}

async function textOf(file: string, place: string, { folder, stdin, interrupted }: Source): Promise<string> {
  let bytes: Buffer;
  try {
    const source = file === '-' ? stdin : (await open(resolve(folder, file))).createReadStream();
    bytes = await buffer(addAbortSignal(interrupted, source));
  } catch (error) {
    if (interrupted.aborted) throw error;
    throw new Failure('failed', `${place} cannot be read (${codeOf(error)}).`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes); // without its byte order mark
  } catch {
    throw new Failure('usage', `${place}: it is not in UTF-8`, 'save it as "CSV UTF-8", or as text in UTF-8');
  }
}

async function csvLines(text: string, place: string, column = 'uid'): Promise<readonly Line[]> {
  const { CsvError, parse } = await import('csv-parse/sync');
  try {
    const options = { info: true, skip_empty_lines: true };
    const records = parse(text, options) as unknown as { info: { lines: number }; record: string[] }[];
    const [header, ...rows] = records;
    const named = header?.record.map(withoutFormulaMark) ?? [];
    const names = named.filter((name) => name === column).length;
    if (header === undefined || names !== 1) {
      const problem = `the header has ${names === 0 ? 'no' : names} column "${column}" (columns: ${header?.record.length ?? 0})`;
      const hint = 'name the column of the uids with --column, and separate columns with commas';
      throw new Failure('usage', `${place}: ${problem}`, hint);
    }
    const index = named.indexOf(column);
    return rows
      .filter(({ record }) => record.some((cell) => cell !== ''))
      .map(({ info, record }) => [info.lines, withoutFormulaMark(record[index] ?? '')]);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    // The message would quote the line.
    throw new Failure('usage', `${place}: line ${String(error.lines)} cannot be read (${error.code})`);
  }
}

/** An object a line, as `users export` writes them. */
function ndjsonLines(text: string, place: string, field = 'uid'): readonly Line[] {
  return numbered(text.split('\n')).flatMap(([number, line]): Line[] => {
    if (line.trim() === '') return [];
    try {
      const value: unknown = JSON.parse(line);
      const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value);
      if (isRecord)
        return [[number, Object.hasOwn(value, field) ? (value as Record<string, unknown>)[field] : null]];
    } catch {
      // The error would quote the line.
    }
    throw new Failure('usage', `${place}: line ${number} is not a JSON object`);
  });
}
