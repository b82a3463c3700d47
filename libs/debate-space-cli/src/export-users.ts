import type { INestApplicationContext } from '@nestjs/common';
import { DebateSpaceService, type UserFilters } from 'nestjs-debate-space';
import { resolve } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Invocation } from './invocation.js';
import { writeNewFile } from './new-file.js';
import { progressDisplay } from './progress-display.js';

export interface ExportOptions {
  readonly format: 'ndjson' | 'csv';
  readonly columns?: readonly string[];
  readonly filter?: UserFilters;
  /** A file that is not there yet. */
  readonly out?: string;
}

/** Writes all users to stdout or into a new file, which is only there when it is complete. */
export async function exportUsers(
  app: INestApplicationContext,
  { surroundings, output }: Invocation,
  { format, columns, filter = {}, out }: ExportOptions,
): Promise<void> {
  const service = app.get(DebateSpaceService);
  const { interrupted: signal } = surroundings;
  // Refuses wrong columns. Nothing is requested before it is read.
  const text = service.exportUsers(filter, { format, columns, signal });
  if (out === undefined) {
    await output.stream(text);
    return;
  }
  const path = resolve(surroundings.folder, out);
  const users = await writeNewFile(path, async (stream) => {
    const { total } = await service.listUsers({ ...filter, perPage: 1 }, { signal });
    const display = progressDisplay(surroundings);
    let users = format === 'csv' ? -1 : 0; // its first record holds the names
    const counting = countRecords(format, (count) => {
      users += count;
      display.show(Math.max(0, users), Math.max(users, total ?? users), '');
    });
    try {
      await pipeline(text, counting, stream);
    } finally {
      display.end();
    }
    return users;
  });
  output.answer({ users, file: path }, `${users} users written to ${path}`);
}

/** Passes text on, and tells how many records have ended with each piece. A line break in quotes ends no record of CSV. */
function countRecords(format: ExportOptions['format'], tell: (count: number) => void): Transform {
  let isQuoted = false;
  return new Transform({
    decodeStrings: false,
    encoding: 'utf8',
    transform(piece: string | Buffer, _, done) {
      let count = 0;
      for (const character of piece.toString()) {
        if (character === '"' && format === 'csv') isQuoted = !isQuoted;
        else if (character === '\n' && !isQuoted) count += 1;
      }
      tell(count);
      done(null, piece);
    },
  });
}
