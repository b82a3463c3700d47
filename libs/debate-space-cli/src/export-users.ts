import type { DebateSpaceService, DebateSpaceUser, UserFilters } from 'nestjs-debate-space';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CommandContext } from './cli-context.js';
import { writeNewFile } from './new-file.js';
import { progressDisplay } from './progress-display.js';
import { counted } from './text.js';
import { USERS_AT_ONCE, usersText, type UsersTextOptions } from './users-text.js';

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
