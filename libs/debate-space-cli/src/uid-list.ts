import { open } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import { addAbortSignal, Readable } from 'node:stream';
import type { UidSource, UidSourceOptions } from 'nestjs-debate-space';
import { codeOf, Failure } from './failure.js';
import type { Surroundings } from './surroundings.js';

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

/** A list of users as the plugin reads it. */
export interface UidList {
  readonly isStdin: boolean;
  readonly options: UidSourceOptions;
  /** Reads the list from its beginning; each call reads the file again. @throws {Failure} when it cannot be read */
  open(): Promise<UidSource>;
}

/**
 * In memory, not in a temporary file: the list may have more personal data than uids, and a killed process would leave that
 * on the disk. A million UUIDs, one a line, are 37 MB.
 */
const MAX_SNAPSHOT_BYTES = 512 * 1024 * 1024;

const FORMATS = ['csv', 'ndjson', 'lines'] as const;
const byExtension: Readonly<Record<string, (typeof FORMATS)[number]>> = {
  '.csv': 'csv',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.txt': 'lines',
};

/** @throws {Failure} when it is not said where the uids are, or in which format */
export function uidList({ uids, file, format, column }: UidListOptions, surroundings: Surroundings): UidList {
  if ((file === undefined) === (uids.length === 0)) {
    throw new Failure('usage', 'Name the users by their uids, or by --file <file>.');
  }
  if (file === undefined) {
    if (format !== undefined || column !== undefined)
      throw new Failure('usage', '--format and --column belong to --file.');
    return { isStdin: false, options: {}, open: () => Promise.resolve(uids) };
  }
  const known = FORMATS.find((each) => each === (format ?? byExtension[extname(file).toLowerCase()]));
  if (known === undefined) {
    throw new Failure('usage', `The format of ${file} is not known: add --format ${FORMATS.join('|')}.`);
  }
  const isStdin = file === '-';
  const path = resolve(surroundings.folder, file);
  return {
    isStdin,
    options: { format: known, column },
    // Ended by an interruption even while it waits for what comes next.
    open: async () =>
      addAbortSignal(
        surroundings.interrupted,
        isStdin ? surroundings.stdin : (await opened(path)).createReadStream(),
      ),
  };
}

/**
 * The same list, read once: whatever becomes of the file – it grows, it is replaced, it is a pipe –, every `open` of the
 * snapshot gives the same uids.
 * @throws {Failure} when the list cannot be read, or has more than `maxBytes`
 */
export async function snapshotOf(list: UidList, maxBytes = MAX_SNAPSHOT_BYTES): Promise<UidList> {
  const source = await list.open();
  if (!(source instanceof Readable)) return list;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of source as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) {
      throw new Failure(
        'failed',
        `The list has more than ${maxBytes} bytes, too many to hold until you confirm it: split it, or look with --dry-run and then give --yes.`,
      );
    }
    pieces.push(piece);
  }
  return { ...list, open: () => Promise.resolve(Readable.from(pieces)) };
}

async function opened(path: string) {
  try {
    return await open(path);
  } catch (error) {
    throw new Failure('failed', `${path} cannot be read (${codeOf(error)}).`);
  }
}
