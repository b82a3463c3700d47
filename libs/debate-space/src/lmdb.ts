export { lmdbStorage, type LmdbStorageOptions } from './storage/lmdb/lmdb-storage.js';
