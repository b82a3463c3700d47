export { lmdbStorage, type LmdbStorageOptions } from './lmdb/lmdb-storage.js';
