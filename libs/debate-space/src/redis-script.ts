import { createHash } from 'node:crypto';

/**
 * Sends one command through the host's own Redis client, and gives back what Redis answers. With node-redis
 * `(...args) => client.sendCommand(args)`, with its cluster `(...args) => cluster.sendCommand(args[3], false, args)`
 * (the fourth word is always a key), with ioredis `(command, ...args) => client.call(command, ...args)`.
 * Strings may come as strings, which is what both do by default, or as buffers.
 */
export type SendCommand = (...args: string[]) => Promise<unknown>;

/** A Lua script: Redis runs it as one step, and keeps it, so that its text is sent once and not with every call. */
export class RedisScript {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = source;
    this.#sha = createHash('sha1').update(source).digest('hex');
  }

  /** Rejects with whatever `send` rejects with. */
  async run(send: SendCommand, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const words = [String(keys.length), ...keys, ...args];
    try {
      return await send('EVALSHA', this.#sha, ...words);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return send('EVAL', this.#source, ...words); // a new Redis, a restarted one, or another node of a cluster
    }
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
