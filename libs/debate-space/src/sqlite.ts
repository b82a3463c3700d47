export { sqliteStorage, type SqliteStorageOptions } from './storage/sqlite.js';
