export {
  postgresStorage,
  type PostgresClient,
  type PostgresFunctions,
  type PostgresPool,
  type PostgresStorageOptions,
} from './storage/postgres.js';
