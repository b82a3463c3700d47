import type { Database } from './database.js';
import { tablePrefix as mysqlPrefix } from './mysql.js';
import { tablePrefix as postgresPrefix } from './postgres.js';
import { schema } from './schema.js';

/**
 * The SQL that creates the tables, for hosts that open their storage with `migrate: false`. It may run any number of times,
 * and changes nothing that is there already.
 *
 * @param place of Postgres the schema of the tables, of MySQL the beginning of their names
 * @throws {@link StorageError} when `place` is not usable
 */
export function storageMigration(dialect: Database['dialect'], place?: string): string {
  const prefixes = { postgres: postgresPrefix, mysql: mysqlPrefix, sqlite: () => '' };
  return schema(dialect, prefixes[dialect](place))
    .map((statement) => `${statement};\n`)
    .join('');
}
