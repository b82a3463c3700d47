import { randomUUID } from 'node:crypto';
import { constants, rmSync } from 'node:fs';
import { copyFile, link, lstat, open, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { DebateSpaceService, DebateSpaceUser, UserFilters } from 'nestjs-debate-space';
import type { CliContext } from './cli-context.js';
import { withFormulaMark } from './csv-cells.js';
import { codeOf, Failure } from './failure.js';
import { counted, shown } from './output.js';
import { progressDisplay } from './progress.js';

export interface ExportOptions {
  readonly format: 'ndjson' | 'csv';
  /** The fields to write, in this order. Default: all. */
  readonly columns?: readonly string[];
  readonly filter?: UserFilters;
  readonly out?: string;
}

/** Users a piece of text; CSV takes its columns from the first ones. */
const USERS_AT_ONCE = 100;
const NAMED_FIELDS = ['uid', 'full_name', 'first_name', 'last_name', 'email', 'image_url', 'created_at'];
const MORE = 'more';
/** Of FAT, and of some network file systems. */
const NO_HARD_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);

/** Writes all users to stdout or into a new file, which is only there when it is complete. */
export async function exportUsers(
  service: DebateSpaceService,
  { io, output }: CliContext,
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
  try {
    await writeNewFile(path, async (file) => {
      const { total } = await service.listUsers({ perPage: 1, ...filter }, { signal });
      const display = await progressDisplay(io);
      async function* watched(): AsyncGenerator<DebateSpaceUser> {
        for await (const user of users) {
          count += 1;
          display.show(count, Math.max(count, total ?? count), '');
          yield user;
        }
      }
      const text = usersText(watched(), options);
      await pipeline(text, file.createWriteStream({ flush: true })).finally(display.end);
    });
  } catch (error) {
    if (count > 0) output.note(`Stopped after ${counted(count, 'user')}; no part of the export is kept.`);
    throw error;
  }
  output.answer({ users: count, file: path }, `${counted(count, 'user')} written to ${shown(path)}`);
}

/** The users as text, a piece for every 100 users. */
export async function* usersText(
  users: AsyncIterable<DebateSpaceUser>,
  { format, columns }: Pick<ExportOptions, 'format' | 'columns'>,
): AsyncGenerator<string> {
  const textOf = format === 'csv' ? await csv(columns) : ndjson(columns);
  let batch: DebateSpaceUser[] = [];
  let isFirst = true;
  for await (const user of users) {
    if (batch.push(user) < USERS_AT_ONCE) continue;
    yield textOf(batch);
    batch = [];
    isFirst = false;
  }
  if (batch.length > 0 || isFirst) yield textOf(batch);
}

function ndjson(columns?: readonly string[]): (users: readonly DebateSpaceUser[]) => string {
  const picked = (user: DebateSpaceUser) =>
    columns
      ? Object.fromEntries(columns.flatMap((name) => (Object.hasOwn(user, name) ? [[name, user[name]]] : [])))
      : user;
  return (users) => users.map((user) => `${JSON.stringify(picked(user))}\n`).join('');
}

/**
 * CSV (RFC 4180), the header row always first. By default the columns are the named ones, then the further ones of the first
 * users, then `more`: a JSON object of the fields that came only later.
 */
async function csv(columns?: readonly string[]): Promise<(users: readonly DebateSpaceUser[]) => string> {
  const { stringify } = await import('csv-stringify/sync');
  let names = columns;
  let header = true;
  return (users) => {
    const known = (names ??= [...NAMED_FIELDS, ...users.flatMap((user) => Object.keys(user))].filter(
      // A field that is called more goes where it says.
      (name, n, all) => all.indexOf(name) === n && name !== MORE,
    ));
    const rows = users.map((user) => {
      const cells = known.map((name) => (Object.hasOwn(user, name) ? user[name] : undefined));
      const others = Object.entries(user).filter(([name]) => !known.includes(name));
      return columns ? cells : [...cells, others.length > 0 ? Object.fromEntries(others) : undefined];
    });
    const text = stringify(rows, {
      columns: columns ? [...known] : [...known, MORE],
      header,
      cast: { string: withFormulaMark, boolean: String },
    });
    header = false;
    return text;
  };
}

/**
 * Writes a new file, readable by its owner only, that has its name when it is complete. No other file is replaced, and
 * nothing is left when anything fails.
 */
export async function writeNewFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  const taken = new Failure('failed', `${shown(path)} exists; name another file.`);
  const temporary = join(dirname(path), `.debate-space-${randomUUID()}`);
  const removeAtExit = (): void => {
    rmSync(temporary, { force: true }); // a second Ctrl-C ends the process immediately
  };
  let file: FileHandle | undefined;
  process.once('exit', removeAtExit);
  try {
    if (await lstat(path).catch(() => undefined)) throw taken;
    file = await open(temporary, 'wx', 0o600);
    await write(file);
    // Rename would replace a file that has got the name in the meantime.
    await link(temporary, path).catch((error: unknown) => {
      if (!NO_HARD_LINKS.has(codeOf(error))) throw error;
      return copyFile(temporary, path, constants.COPYFILE_EXCL);
    });
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw taken;
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new Failure('failed', `${shown(path)} cannot be written (${codeOf(error)}).`);
  } finally {
    await file?.close();
    await rm(temporary, { force: true });
    process.off('exit', removeAtExit);
  }
}
