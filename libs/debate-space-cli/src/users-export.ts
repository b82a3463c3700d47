import type { DebateSpaceService, DebateSpaceUser, UserFilters } from 'nestjs-debate-space';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CommandContext } from './cli-context.js';
import { progressDisplay } from './progress.js';
import { counted } from './output.js';
import { stringify, type Options } from 'csv-stringify/sync';
import { createWriteStream, rmSync, type WriteStream } from 'node:fs';
import { once } from 'node:events';
import { codeOf, Failure } from './failure.js';

export interface ExportOptions extends UsersTextOptions {
  readonly filter?: UserFilters;
  /** A file that is not there yet. */
  readonly out?: string;
}

/** Writes all users to stdout or into a new file, which is only there when it is complete. */
export async function exportUsers(
  service: DebateSpaceService,
  { io, output }: CommandContext,
  { filter = {}, out, ...options }: ExportOptions,
): Promise<void> {
  const { interrupted: signal } = io;
  const users = service.users({ perPage: USERS_AT_ONCE, ...filter }, { signal });
  if (out === undefined) {
    await output.stream(usersText(users, options));
    return;
  }
  const path = resolve(io.folder, out);
  let count = 0;
  const writing = writeNewFile(path, async (file) => {
    const { total } = await service.listUsers({ perPage: 1, ...filter }, { signal });
    const display = progressDisplay(io);
    const shown = watched(users, () => {
      count += 1;
      display.show(count, Math.max(count, total ?? count), '');
    });
    try {
      await pipeline(usersText(shown, options), file);
    } finally {
      display.end();
    }
  });
  try {
    await writing;
  } catch (error) {
    if (count > 0) output.note(`Stopped after ${counted(count, 'user')}; no part of the export is kept.`);
    throw error;
  }
  output.answer({ users: count, file: path }, `${count} users written to ${path}`);
}

async function* watched(
  users: AsyncIterable<DebateSpaceUser>,
  onUser: () => void,
): AsyncGenerator<DebateSpaceUser> {
  for await (const user of users) {
    onUser();
    yield user;
  }
}

/** Users a piece of text; CSV takes its columns from the first ones. */
export const USERS_AT_ONCE = 100;

export interface UsersTextOptions {
  /** `ndjson`: each user as JSON on a line, for programs. `csv`: with a header row, for spreadsheets. */
  readonly format: 'ndjson' | 'csv';
  /** The fields to write, in this order. Default: all, in CSV as `csvOf` says. */
  readonly columns?: readonly string[] | undefined;
}

/** The users as text, a piece for every 100 users. */
export function usersText(
  users: AsyncIterable<DebateSpaceUser>,
  { format, columns }: UsersTextOptions,
): AsyncGenerator<string, void> {
  return format === 'csv' ? csvOf(batchesOf(users), columns) : ndjsonOf(batchesOf(users), columns);
}

async function* batchesOf(users: AsyncIterable<DebateSpaceUser>): AsyncGenerator<DebateSpaceUser[], void> {
  let batch: DebateSpaceUser[] = [];
  for await (const user of users) {
    if (batch.push(user) < USERS_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

async function* ndjsonOf(
  batches: AsyncIterable<readonly DebateSpaceUser[]>,
  columns?: readonly string[],
): AsyncGenerator<string, void> {
  for await (const users of batches)
    yield users.map((user) => `${JSON.stringify(columns ? picked(user, columns) : user)}\n`).join('');
}

function picked(user: DebateSpaceUser, columns: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    columns.flatMap((name) => (Object.hasOwn(user, name) ? [[name, user[name]]] : [])),
  );
}

/** The fields that `DebateSpaceUser` names, in its order. */
const NAMED_FIELDS = ['uid', 'full_name', 'first_name', 'last_name', 'email', 'image_url', 'created_at'];
/** The last column: what has none of its own. */
const MORE = 'more';

/**
 * A spreadsheet would take some cells for formulas. `escape_formulas` puts a `'` before those that begin with = + - @,
 * their full-width forms, a tab or a carriage return, of the header too; OWASP (CSV Injection) and ASVS 1.2.10 name two
 * beginnings more.
 */
const dialect: Options = {
  escape_formulas: true,
  cast: { string: (text) => (/^[\0\n]/.test(text) ? `'${text}` : text), boolean: String },
};

interface Table {
  readonly header: readonly string[];
  readonly row: (user: DebateSpaceUser) => unknown[];
}

/**
 * The users as CSV (RFC 4180), a text for each page, the header row always first. Objects and arrays are JSON in their
 * cell; null and what is absent leave it empty.
 * @param columns the fields to write. By default the named ones, then the further ones of the first page, then `more`:
 * a JSON object of the fields that came only later
 */
export async function* csvOf(
  pages: AsyncIterable<readonly DebateSpaceUser[]>,
  columns?: readonly string[],
): AsyncGenerator<string, void> {
  let table = columns && tableOf(columns);
  let header = true;
  for await (const users of pages) {
    table ??= tableOfAll(users);
    yield stringify(users.map(table.row), { ...dialect, columns: table.header, header });
    header = false;
  }
  if (header) yield stringify([], { ...dialect, columns: (table ?? tableOfAll([])).header, header });
}

function tableOf(names: readonly string[]): Table {
  return {
    header: names,
    row: (user) => names.map((name) => (Object.hasOwn(user, name) ? user[name] : undefined)),
  };
}

function tableOfAll(users: readonly DebateSpaceUser[]): Table {
  const names = new Set([...NAMED_FIELDS, ...users.flatMap((user) => Object.keys(user))]);
  names.delete(MORE); // a field of that name goes where it says
  const { header, row } = tableOf([...names]);
  const more = (user: DebateSpaceUser): unknown => {
    const fields = Object.entries(user).filter(([name]) => !names.has(name));
    return fields.length === 0 ? undefined : Object.fromEntries(fields);
  };
  return { header: [...header, MORE], row: (user) => [...row(user), more(user)] };
}

/**
 * Writes a new file, readable by its owner only, which is removed when anything fails. A file that is there stays as it is.
 * @param write must end and close the stream
 * @throws {Failure} when the name is taken, or the file cannot be written
 */
export async function writeNewFile<T>(path: string, write: (stream: WriteStream) => Promise<T>): Promise<T> {
  const stream = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
  const remove = (): void => {
    rmSync(path, { force: true });
  };
  let isOurs = false;
  try {
    await once(stream, 'open');
    isOurs = true;
    process.once('exit', remove); // a second Ctrl-C ends the process immediately
    return await write(stream);
  } catch (error) {
    stream.destroy();
    if (isOurs) remove();
    if (!('syscall' in Object(error))) throw error; // not of the system
    if (codeOf(error) === 'EEXIST') throw new Failure('failed', `${path} exists; name another file.`);
    throw new Failure('failed', `${path} cannot be written (${codeOf(error)}).`);
  } finally {
    process.off('exit', remove);
  }
}
