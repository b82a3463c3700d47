import { storageMigration } from './storage/migration.js';

export {
  mysqlStorage,
  type MysqlConnection,
  type MysqlPool,
  type MysqlStorageOptions,
} from './storage/mysql.js';
export type { HostFunctions, HostQuery, ServerOptions } from './storage/server-calls.js';

/**
 * The SQL that creates the tables of `mysqlStorage`, for hosts that give it `migrate: false`: several statements, each with a
 * semicolon and a line break at its end.
 *
 * @param options `prefix`: as of `mysqlStorage`; `from`: the version of the tables that exist, 0 by default
 * @throws `StorageError` when names of tables cannot begin with `prefix`
 */
export const mysqlMigration = ({
  prefix,
  from,
}: { readonly prefix?: string; readonly from?: number } = {}): string =>
  storageMigration('mysql', prefix, from);
