export { postgresStorage, type PostgresStorageOptions } from './postgres/postgres-storage.js';
export { postgresMigration } from './postgres/postgres-rows.js';
export type { PostgresQuery } from './postgres/postgres-rows.js';
