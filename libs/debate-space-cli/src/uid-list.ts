import { open } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { codeOf, Failure } from './failure.js';
import type { CliIo } from './cli-io.js';
import { uidRow, type UidRow } from './uid-row.js';
import { UID_FORMATS, type UidFormat } from './uid-format.js';
import { uidRows } from './uid-text.js';

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
