import type { Redis, RedisOptions } from 'ioredis';
import { OutboxError } from './errors.js';
import { BullmqOutbox } from './outbox/bullmq/bullmq-outbox.js';
import type { OutboxFactory } from './outbox/outbox.js';

export interface BullmqOutboxOptions {
  /**
   * Where Redis is: a URL (`redis://…`, `rediss://…`), the options of ioredis, or an ioredis instance of the host's own,
   * which is then left open.
   */
  readonly connection: string | RedisOptions | Redis;
  /**
   * How the names of all keys begin: `debate-space` unless told. Applications that share a Redis need no prefixes of
   * their own, unless they have the same `applicationName` at different services.
   */
  readonly prefix?: string;
}

/**
 * Keeps logouts in BullMQ on Redis, for apps of many instances: each of them may deliver what any of them took in, a
 * pause holds for all, and so does the rate limit. The jobs lie in the queue `logouts-<applicationName>`; those that are
 * parked are its failed ones. Needs the packages `bullmq` and `ioredis`, and Redis 5 or later – 6.2 or later is better –
 * with its append-only file on and `maxmemory-policy noeviction`.
 *
 * Opening rejects with an {@link OutboxError} when Redis does not answer within five seconds or a package is missing.
 * When Redis goes away later, every call rejects with one at once, until it is back.
 */
export function bullmqOutbox(options: BullmqOutboxOptions): OutboxFactory {
  const { connection, prefix = 'debate-space' } = options;
  if (typeof connection === 'string' ? connection === '' : typeof connection !== 'object') {
    throw new OutboxError(
      'bullmqOutbox needs `connection`: the URL of Redis, the options of ioredis, or its instance',
    );
  }
  if (prefix === '') throw new OutboxError('`prefix` of bullmqOutbox must not be empty; leave it out');
  return { open: (context) => BullmqOutbox.open(connection, prefix, context) };
}
