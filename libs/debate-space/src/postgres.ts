import { storageMigration } from './storage/migration.js';

export {
  postgresStorage,
  type PostgresClient,
  type PostgresPool,
  type PostgresStorageOptions,
} from './storage/postgres.js';
export type { HostFunctions, HostQuery, ServerOptions } from './storage/server-calls.js';

/**
 * The SQL that creates the tables of `postgresStorage`, for hosts that give it `migrate: false`. It may run any number of times.
 *
 * @param options `schema`: as of `postgresStorage`; `from`: the version of the tables that exist, 0 by default
 * @throws `StorageError` when `schema` cannot be the name of one
 */
export const postgresMigration = ({
  schema,
  from,
}: { readonly schema?: string; readonly from?: number } = {}): string =>
  storageMigration('postgres', schema, from);
