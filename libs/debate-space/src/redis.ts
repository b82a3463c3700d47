import type { StorageEngine } from 'durable-jobs';
import { redisStorage as storageInRedis, type SendCommand } from 'durable-jobs/redis';

export type { SendCommand } from 'durable-jobs/redis';

/** How the storage reaches Redis, and under which names it keeps its rows. */
export interface RedisStorageOptions {
  /** The host's own client, which stays the host's: the storage neither configures nor closes it. */
  readonly sendCommand: SendCommand;
  /** How the names of the keys begin. @defaultValue `debate-space` */
  readonly prefix?: string;
  /** How long one call may take before it is given up with an unknown outcome, in ms. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

/**
 * Keeps everything in Redis 5 or later, or Valkey – one node, Sentinel or Cluster – through the host's own client.
 * The keys are `<prefix>:{<namespace>}:values`, `…:names` and `…:commits:<process>`.
 *
 * @example
 * storage: redisStorage({ sendCommand: (...args) => client.sendCommand(args) })
 */
export function redisStorage({ prefix = 'debate-space', ...options }: RedisStorageOptions): StorageEngine {
  return storageInRedis({ prefix, ...options });
}
