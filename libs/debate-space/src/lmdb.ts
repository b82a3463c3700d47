export { lmdbStorage, type LmdbStorageOptions } from 'durable-jobs/lmdb';
