import { StorageError } from '../../errors.js';

/** Longer names Postgres cuts off. */
const MAX_NAME_BYTES = 63;
const COMMIT_SUFFIX = '_commit_v1';

/** The table and its function as they stand in SQL, with their schema. */
export interface PostgresTable {
  readonly table: string;
  /** The name ends with its version, so that processes of two versions can run side by side. */
  readonly commit: string;
}

/**
 * @param name as in SQL: `debate_space`, `app.debate_space`, `"My App".debate_space`; without a schema it is in `public`
 * @throws {@link StorageError} when it is none
 */
export function postgresTable(name = 'debate_space'): PostgresTable {
  const part = String.raw`([A-Za-z_][A-Za-z0-9_]*|"(?:[^"$\0]|"")+")`;
  const match = new RegExp(`^(?:${part}\\.)?${part}$`).exec(name);
  const table = identifier(match?.[2] ?? '');
  if (!match || Buffer.byteLength(table + COMMIT_SUFFIX) > MAX_NAME_BYTES) {
    throw new StorageError(
      'The option table of postgresStorage is no usable name of a table',
      'give one like app.debate_space, of at most 53 bytes',
    );
  }
  const schema = quoted(identifier(match[1] ?? 'public'));
  return { table: `${schema}.${quoted(table)}`, commit: `${schema}.${quoted(table + COMMIT_SUFFIX)}` };
}

/** Postgres folds a name to lower case unless it is quoted. */
function identifier(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part.toLowerCase();
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}
