import { Readable } from 'node:stream';
import { InvalidArgumentError } from './errors.js';
import { LinkedSignal } from './linked-signal.js';
import type { DebateSpaceUser } from './remote/user-page.js';
import { csvOf } from './users-csv.js';

export interface UsersExportOptions {
  /**
   * `ndjson` (default): each user as JSON on a line, for programs. `csv`: with a header row, for spreadsheets; a cell that
   * would be a formula begins with a `'` there, a uid too.
   */
  readonly format?: 'ndjson' | 'csv' | undefined;
  /**
   * The fields to write, in this order. Default: all – in CSV those of `DebateSpaceUser`, then further ones of the first
   * page, then a column `more` with a JSON object of those that came only later.
   */
  readonly columns?: readonly string[] | undefined;
  /** Ends the export; the stream is then destroyed with an `AbortedError`. */
  readonly signal?: AbortSignal | undefined;
}

type Pages = AsyncIterable<readonly DebateSpaceUser[]>;

/** @throws {InvalidArgumentError} for a format that there is not, or columns that are not distinct names */
export function exportOf(
  walk: (signal: AbortSignal) => Pages,
  { format = 'ndjson', columns, signal }: UsersExportOptions,
): Readable {
  if (!['ndjson', 'csv'].includes(format)) throw invalid("format must be 'ndjson' or 'csv'");
  if (columns !== undefined && !areNames(columns))
    throw invalid('columns must be an array of one or more names of fields, each of them once');
  const text = format === 'csv' ? csvOf : ndjsonOf;
  return new UsersExport((stopped) => text(walk(stopped), columns), signal);
}

/** The text, page after page, each asked for when a reader has room. Who destroys the stream ends the request too. */
class UsersExport extends Readable {
  readonly #stop = new AbortController();
  readonly #linked: LinkedSignal;
  readonly #text: AsyncIterator<string, void>;

  constructor(text: (stopped: AbortSignal) => AsyncGenerator<string, void>, signal: AbortSignal | undefined) {
    super({ encoding: 'utf8' });
    this.#linked = new LinkedSignal([signal, this.#stop.signal]);
    this.#text = text(this.#linked.signal);
  }

  override _read(): void {
    this.#text.next().then(
      ({ done, value }) => this.push(done === true ? null : value, 'utf8'),
      (error: unknown) => this.destroy(error as Error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#stop.abort();
    this.#linked.unlink();
    callback(error);
  }
}

async function* ndjsonOf(pages: Pages, columns?: readonly string[]): AsyncGenerator<string, void> {
  for await (const users of pages) {
    yield users.map((user) => `${JSON.stringify(columns ? picked(user, columns) : user)}\n`).join('');
  }
}

function picked(user: DebateSpaceUser, columns: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    columns.flatMap((name) => (Object.hasOwn(user, name) ? [[name, user[name]]] : [])),
  );
}

function areNames(columns: unknown): boolean {
  return (
    Array.isArray(columns) &&
    columns.length > 0 &&
    new Set(columns).size === columns.length &&
    columns.every((name) => typeof name === 'string' && name !== '')
  );
}

function invalid(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(problem, {
    operation: 'exportUsers',
    retryable: false,
    outcome: 'not-sent',
    attempts: 0,
  });
}
