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

/*
 * KEYS[1] is a hash with the values, KEYS[2] a sorted set whose scores are all 0: it keeps the names in byte order.
 * KEYS[3] is a hash with the latest commits of one process.
 */

/** How many of its latest commits are remembered for a process. */
const REMEMBERED_COMMITS = 1024;
/** How long they outlive the process. Longer than any client goes on sending what was not answered. */
const REMEMBERED_MS = 3_600_000;

/**
 * `number, number of checks, (name, value)…` → 1 or 0. A value stands behind `=`; without it, the name is absent.
 *
 * ioredis sends a command again when the connection broke before the reply. The second time the checks would fail, and
 * `0` would be a lie: therefore the commit is remembered by its number.
 */
export const COMMIT = new RedisScript(String.raw`
local values, names, commits = KEYS[1], KEYS[2], KEYS[3]
local number = ARGV[1]
local slot = tostring(tonumber(number) % ${REMEMBERED_COMMITS})
if redis.call('HGET', commits, slot) == number then return 1 end

local lastCheck = 2 + 2 * tonumber(ARGV[2])
for n = 3, lastCheck, 2 do
  local value = redis.call('HGET', values, ARGV[n])
  if (value and '=' .. value or '') ~= ARGV[n + 1] then return 0 end
end
for n = lastCheck + 1, #ARGV, 2 do
  local name, value = ARGV[n], ARGV[n + 1]
  if value == '' then
    redis.call('HDEL', values, name)
    redis.call('ZREM', names, name)
  else
    redis.call('HSET', values, name, string.sub(value, 2))
    redis.call('ZADD', names, 0, name)
  end
end

if redis.call('HSET', commits, slot, number) == 1 then redis.call('PEXPIRE', commits, ${REMEMBERED_MS}) end
return 1
`);

/** Lua hands no more than about 8,000 values to a function. */
const READ = String.raw`
local function read(names)
  local found = {}
  for first = 1, #names, 1000 do
    local last = math.min(first + 999, #names)
    for _, value in ipairs(redis.call('HMGET', KEYS[1], unpack(names, first, last))) do
      found[#found + 1] = value
    end
  end
  return found
end
`;

/** `name…` → values; nil for what is absent */
export const GET = new RedisScript(`${READ} return read(ARGV)`);

/** `command, first bound, second bound, limit` → names and values by turns */
export const RANGE = new RedisScript(String.raw`${READ}
local names = redis.call(ARGV[1], KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
local rows = {}
for n, value in ipairs(read(names)) do
  rows[2 * n - 1], rows[2 * n] = names[n], value or ''
end
return rows
`);

/** `from, to` → the number of names */
export const COUNT = new RedisScript(String.raw`return redis.call('ZLEXCOUNT', KEYS[2], ARGV[1], ARGV[2])`);

/** → seconds and microseconds, of the node that has the keys */
export const TIME = new RedisScript(String.raw`
redis.call('PEXPIRE', KEYS[3], ${REMEMBERED_MS})
return redis.call('TIME')
`);

/** Fails where the keys cannot be written, such as on a replica. → the text of INFO, empty where it is forbidden. */
export const OPEN = new RedisScript(String.raw`
redis.call('HDEL', KEYS[1], '')
redis.call('ZREM', KEYS[2], '')
local info = redis.pcall('INFO')
return type(info) == 'string' and info or ''
`);

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
