import { randomUUID, createHash } from 'node:crypto';
import { ServerCalls, ServerClock } from './server-calls.js';
import type {
  Storage,
  RangeOptions,
  StorageContext,
  StorageEngine,
  StorageRow,
  StorageValues,
  StorageWarning,
} from './storage.js';

/** How the storage reaches Redis, and under which names it keeps its rows. */
export interface RedisStorageOptions {
  /** The host's own client, which stays the host's: the storage neither configures nor closes it. */
  readonly sendCommand: SendCommand;
  /** How the names of the keys begin. @defaultValue `durable-jobs` */
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
export function redisStorage(options: RedisStorageOptions): StorageEngine {
  return {
    name: 'redis',
    guarantee:
      'survives crashes of the app, and is as durable as this Redis: with appendfsync everysec its crash may lose the last second, and a failover what the replica had not received',
    durable: true,
    open: (context) => RedisStorage.open(options, context),
  };
}

class RedisStorage implements Storage {
  readonly #send: SendCommand;
  readonly #keys: readonly string[];
  readonly #calls: ServerCalls;
  readonly #clock = new ServerClock(() => this.#run(TIME, [], timeOf));
  #commits = 0;
  readonly place: string;
  warnings: readonly StorageWarning[] = [];

  private constructor(
    { sendCommand, prefix = 'durable-jobs', timeoutMs }: RedisStorageOptions,
    name: string,
  ) {
    this.#send = sendCommand;
    this.place = `the keys ${prefix}:{${name}}:…`;
    // The braces put all keys into one slot of a Cluster.
    this.#keys = ['values', 'names', `commits:${randomUUID()}`].map((key) => `${prefix}:{${name}}:${key}`);
    const hint =
      'check that it runs and accepts writes, and that sendCommand of redisStorage returns its replies';
    this.#calls = new ServerCalls('Redis', hint, timeoutMs);
  }

  static async open(options: RedisStorageOptions, context: StorageContext): Promise<RedisStorage> {
    const storage = new RedisStorage(options, context.namespace);
    storage.warnings = await storage.#run(OPEN, [], (info) => warningsOf(textOf(info) ?? ''));
    await storage.#clock.start(context.contained);
    return storage;
  }

  get(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    return this.#run(GET, keys, textsOf);
  }

  range(from: string, to: string, { limit, reverse = false }: RangeOptions): Promise<readonly StorageRow[]> {
    const bounds = [`[${from}`, `(${to}`];
    const words = reverse ? ['ZREVRANGEBYLEX', ...bounds.reverse()] : ['ZRANGEBYLEX', ...bounds];
    return this.#run(RANGE, [...words, String(limit)], (reply) => {
      const found = textsOf(reply);
      return Array.from({ length: found.length / 2 }, (_, n) => [found[2 * n] ?? '', found[2 * n + 1] ?? '']);
    });
  }

  count(family: string): Promise<number> {
    return this.#run(COUNT, [`[${family}:`, `(${family};`], Number); // ';' follows ':'
  }

  commit(checks: StorageValues, changes: StorageValues): Promise<boolean> {
    this.#commits += 1;
    const words = [...checks, ...changes].flatMap(([key, value]) => [
      key,
      value === undefined ? '' : `=${value}`,
    ]);
    return this.#run(COMMIT, [String(this.#commits), String(checks.size), ...words], (reply) => {
      const made = Number(reply);
      if (made !== 0 && made !== 1) throw new TypeError('not the reply to a commit');
      return made === 1;
    });
  }

  now(): number {
    return this.#clock.now();
  }

  close(): Promise<void> {
    this.#clock.stop();
    return this.#calls.close();
  }

  #run<T>(script: RedisScript, words: readonly string[], parse: (reply: unknown) => T): Promise<T> {
    return this.#calls.run(async (isLate) => parse(await script.run(this.#send, this.#keys, words, isLate)));
  }
}

function timeOf(reply: unknown): number {
  const [seconds, micros] = textsOf(reply);
  return Number(seconds) * 1000 + Number(micros) / 1000;
}

/** What an operator should change. What `INFO` does not say gives no warning, since many hosts restrict it. */
function warningsOf(info: string): readonly StorageWarning[] {
  const [, policy = 'noeviction'] = /^maxmemory_policy:(.*?)\r?$/m.exec(info) ?? [];
  const warnings = [
    /^aof_enabled:0\r?$/m.test(info) && {
      problem: 'This Redis has no append-only file: a restart loses jobs that are not done yet',
      hint: 'set appendonly yes',
    },
    policy !== 'noeviction' && {
      problem: `This Redis deletes data when its memory is full (maxmemory-policy ${policy}), jobs too`,
      hint: 'set maxmemory-policy noeviction',
    },
  ];
  return warnings.filter((warning) => warning !== false);
}

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
class RedisScript {
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
const COMMIT = new RedisScript(String.raw`
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
const GET = new RedisScript(`${READ} return read(ARGV)`);

/** `command, first bound, second bound, limit` → names and values by turns */
const RANGE = new RedisScript(String.raw`${READ}
local names = redis.call(ARGV[1], KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
local rows = {}
for n, value in ipairs(read(names)) do
  rows[2 * n - 1], rows[2 * n] = names[n], value or ''
end
return rows
`);

/** `from, to` → the number of names */
const COUNT = new RedisScript(String.raw`return redis.call('ZLEXCOUNT', KEYS[2], ARGV[1], ARGV[2])`);

/** → seconds and microseconds, of the node that has the keys */
const TIME = new RedisScript(String.raw`
redis.call('PEXPIRE', KEYS[3], ${REMEMBERED_MS})
return redis.call('TIME')
`);

/** Fails where the keys cannot be written, such as on a replica. → the text of INFO, empty where it is forbidden. */
const OPEN = new RedisScript(String.raw`
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
function textOf(reply: unknown): string | undefined {
  if (reply === null) return undefined;
  if (typeof reply === 'string') return reply;
  if (reply instanceof Uint8Array) return Buffer.from(reply).toString();
  throw new TypeError('not a text');
}

/** @throws TypeError when the reply is no list of texts */
function textsOf(reply: unknown): (string | undefined)[] {
  if (Array.isArray(reply)) return reply.map(textOf);
  throw new TypeError('not a list');
}
