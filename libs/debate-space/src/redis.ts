export { redisStorage, type RedisStorageOptions } from './storage/redis/redis-storage.js';
export type { SendCommand } from './storage/redis/redis-script.js';
