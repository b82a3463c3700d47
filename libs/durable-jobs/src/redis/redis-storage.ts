import { randomUUID } from 'node:crypto';
import { ServerCalls } from '../server-calls.js';
import { ServerClock } from '../server-clock.js';
import type {
  Storage,
  RangeOptions,
  StorageContext,
  StorageEngine,
  StorageRow,
  StorageValues,
  StorageWarning,
} from '../storage.js';
import {
  COMMIT,
  COUNT,
  GET,
  OPEN,
  RANGE,
  type RedisScript,
  type SendCommand,
  textOf,
  textsOf,
  TIME,
} from './redis-scripts.js';

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
