import type { RecordValues, Records } from '../../erasure/records.js';
import { RedisScript, type SendCommand } from '../../redis-script.js';
import type { RedisLink } from './redis-link.js';

/** `values, names | …`: four lists, each after its length: expected names with values, names expected to be absent, names with new values, names to remove. */
const CHANGE = String.raw`
local values, names = KEYS[1], KEYS[2]
local next = 1
local function take()
  next = next + 1
  return ARGV[next - 1]
end
for _ = 1, tonumber(take()) do
  local name, value = take(), take()
  if redis.call('HGET', values, name) ~= value then return 0 end
end
for _ = 1, tonumber(take()) do
  if redis.call('HEXISTS', values, take()) == 1 then return 0 end
end
for _ = 1, tonumber(take()) do
  local name, value = take(), take()
  redis.call('HSET', values, name, value)
  redis.call('ZADD', names, 0, name)
end
for _ = 1, tonumber(take()) do
  local name = take()
  redis.call('HDEL', values, name)
  redis.call('ZREM', names, name)
end
return 1
`;

/** `values, names | from, to, limit` → names and values by turns */
const RANGE = String.raw`
local values, names = KEYS[1], KEYS[2]
local found = {}
for _, name in ipairs(redis.call('ZRANGEBYLEX', names, '[' .. ARGV[1], '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])) do
  table.insert(found, name)
  table.insert(found, redis.call('HGET', values, name) or '')
end
return found
`;

/** The erasures in Redis: a hash has the values, and a sorted set the order of their names. */
export class RedisRecords implements Records {
  readonly #link: RedisLink;
  readonly #keys: readonly [values: string, names: string];
  readonly #change = new RedisScript(CHANGE);
  readonly #range = new RedisScript(RANGE);

  constructor(link: RedisLink, prefix: string, namespace: string) {
    this.#link = link;
    this.#keys = [`${prefix}:erasures-${namespace}:values`, `${prefix}:erasures-${namespace}:names`];
  }

  async get(keys: readonly string[]): Promise<readonly (string | undefined)[]> {
    if (keys.length === 0) return [];
    const values = await this.#link.run((client) => client.hmget(this.#keys[0], ...keys));
    return values.map((value) => value ?? undefined);
  }

  async range(from: string, to: string, limit: number): Promise<readonly (readonly [string, string])[]> {
    const found = (await this.#run(this.#range, [from, to, String(limit)])) as readonly string[];
    return Array.from({ length: found.length / 2 }, (_, n) => [found[2 * n] ?? '', found[2 * n + 1] ?? '']);
  }

  async change(expected: RecordValues, changes: RecordValues): Promise<boolean> {
    const words = [expected, changes].flatMap((records) => {
      const there = [...records].flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
      const absent = [...records].flatMap(([key, value]) => (value === undefined ? [key] : []));
      return [String(there.length), ...there.flat(), String(absent.length), ...absent];
    });
    return (await this.#run(this.#change, words)) === 1;
  }

  #run(script: RedisScript, words: readonly string[]): Promise<unknown> {
    return this.#link.run((client) => {
      const send: SendCommand = async (command = '', ...rest) => client.call(command, ...rest);
      return script.run(send, this.#keys, words);
    });
  }
}
