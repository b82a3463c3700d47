export { postgresStorage, type PostgresStorageOptions } from './storage/postgres/postgres-storage.js';
export { postgresMigration } from './storage/postgres/postgres-migration.js';
export type { PostgresQuery } from './storage/postgres/postgres-rows.js';
