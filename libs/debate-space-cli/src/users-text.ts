import type { DebateSpaceUser } from 'nestjs-debate-space';
import { csvOf } from './users-csv.js';

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
