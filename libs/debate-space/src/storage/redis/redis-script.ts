import { createHash } from 'node:crypto';

/**
 * Sends one command through the host's own Redis client and returns the reply. The storage sends only `EVALSHA` and
 * `EVAL`, in which the fourth word is always a key: a cluster finds the node by it.
 *
 * @example node-redis
 * (...args) => client.sendCommand(args)
 * @example node-redis, Cluster
 * (...args) => cluster.sendCommand(args[3], false, args)
 * @example ioredis, one node or Cluster
 * (command, ...args) => client.call(command, ...args)
 */
export type SendCommand = (...args: string[]) => Promise<unknown>;

/** A Lua script: Redis runs it as one step and caches it by its hash, so that its text is rarely sent. */
export class RedisScript {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = source;
    this.#sha = createHash('sha1').update(source).digest('hex');
  }

  /** @param isLate whether nobody waits for the reply any more */
  async run(
    send: SendCommand,
    keys: readonly string[],
    args: readonly string[],
    isLate: () => boolean,
  ): Promise<unknown> {
    const words = [String(keys.length), ...keys, ...args];
    try {
      return await send('EVALSHA', this.#sha, ...words);
    } catch (error) {
      const { message } = Object(error) as { message?: unknown };
      if (isLate() || !/\bNOSCRIPT\b/.test(String(message))) throw error;
      return send('EVAL', this.#source, ...words); // a restart, a failover or SCRIPT FLUSH empties the cache
    }
  }
}

/**
 * A text may come as a buffer, depending on the client's settings.
 * @returns `undefined` for nil
 * @throws TypeError when the reply is something else
 */
export function textOf(reply: unknown): string | undefined {
  if (reply === null) return undefined;
  if (typeof reply === 'string') return reply;
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString();
  throw new TypeError('not a text');
}

/** @throws TypeError when the reply is no list of texts */
export function textsOf(reply: unknown): (string | undefined)[] {
  if (Array.isArray(reply)) return reply.map(textOf);
  throw new TypeError('not a list');
}
