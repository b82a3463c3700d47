export { redisStorage, type RedisStorageOptions } from './redis/redis-storage.js';
export type { SendCommand } from './redis/redis-storage.js';
