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
 * semicolon and a line break at its end. It may run any number of times, and changes nothing that exists.
 *
 * @param options `prefix`: as of `mysqlStorage`
 * @throws `StorageError` when names of tables cannot begin with `prefix`
 */
export const mysqlMigration = ({ prefix }: { readonly prefix?: string } = {}): string =>
  storageMigration('mysql', prefix);
