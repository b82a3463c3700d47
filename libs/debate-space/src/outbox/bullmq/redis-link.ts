import type { Redis, RedisOptions } from 'ioredis';
import { OutboxError } from '../../errors.js';
import { answered, inTime } from '../../in-time.js';
import { loadIoredis } from './optional-packages.js';

const FIRST_ANSWER_MS = 5_000;
const ANSWER_MS = 5_000;
const FAREWELL_MS = 1_000;
const MOST_RECONNECT_MS = 2_000;
/** Waiting does not mend these. */
const REFUSAL = /^(WRONGPASS|NOAUTH|NOPERM)/;

/**
 * A connection that never makes anybody wait for a Redis that is away: ioredis would keep commands back until it has
 * come again. Nothing of what ioredis throws leaves it, for that carries the command, and with it the uid.
 */
export class RedisLink {
  readonly client: Redis;
  readonly #owned: boolean;
  #closed = false;
  #lastError: unknown;
  readonly #note = (error: unknown): void => {
    this.#lastError = error;
  };

  readonly #underWay = new Set<() => void>();
  /** An instance of the host's own may keep what was under way, and send it again when Redis is back. */
  readonly #broken = (): void => {
    for (const fail of this.#underWay) fail();
  };

  private constructor(client: Redis, owned: boolean) {
    this.client = client;
    this.#owned = owned;
    client.on('close', this.#broken);
    client.on('error', this.#note); // without a listener ioredis writes to the host's console
  }

  /** @throws {OutboxError} when Redis does not answer within five seconds */
  static async open(connection: string | RedisOptions | Redis): Promise<RedisLink> {
    const isInstance = typeof connection === 'object' && 'defineCommand' in connection;
    const link = isInstance
      ? new RedisLink(connection, false)
      : new RedisLink(await connect(connection), true);
    try {
      if (link.client.options.keyPrefix) {
        throw new OutboxError(
          'BullMQ knows no keyPrefix of ioredis; leave it out, and give bullmqOutbox a prefix',
        );
      }
      await link.#ready();
      return link;
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  /** Rejects with an {@link OutboxError}: at once when there is no connection, after five seconds without an answer. */
  async run<T>(work: (client: Redis) => Promise<T>): Promise<T> {
    if (this.#closed) throw new OutboxError('the outbox is closed');
    if (this.client.status !== 'ready') throw this.#failed('is away', this.#lastError);
    let fail: () => void = () => undefined;
    const broken = new Promise<never>((_, reject) => {
      fail = () => { reject(new Error('ECONNRESET')); }; // prettier-ignore
    });
    this.#underWay.add(fail);
    try {
      return await answered(Promise.race([work(this.client), broken]), ANSWER_MS);
    } catch (error) {
      throw this.#failed('failed', error);
    } finally {
      this.#underWay.delete(fail);
    }
  }

  /** Ends within about a second, whatever state Redis is in. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#owned) {
      const quitting = this.client.quit().catch(() => undefined);
      // Only then: on a closed connection it keeps the process alive for a while.
      if ((await inTime(quitting, FAREWELL_MS, undefined)) !== 'OK') this.client.disconnect();
    } else {
      this.client.off('close', this.#broken).off('error', this.#note);
    }
  }

  async #ready(): Promise<void> {
    const { client } = this;
    if (client.status === 'ready') return;
    let stop: () => void = () => undefined;
    const answer = new Promise<boolean>((resolve) => {
      const onReady = (): void => { resolve(true); }; // prettier-ignore
      const onError = (error: Error): void => { if (REFUSAL.test(error.message)) resolve(false); }; // prettier-ignore
      client.on('ready', onReady).on('error', onError);
      stop = () => client.off('ready', onReady).off('error', onError);
    });
    if (client.status === 'wait') client.connect().catch(this.#note); // it goes on trying
    const isReady = await inTime(answer, FIRST_ANSWER_MS, false);
    stop();
    if (!isReady) throw this.#failed('did not answer', this.#lastError);
  }

  #failed(what: string, error: unknown): OutboxError {
    const { host, port, path, sentinels, name } = this.client.options;
    const place = sentinels
      ? `of the Sentinel group ${name ?? ''}`
      : `at ${path ?? `${host ?? ''}:${port ?? ''}`}`;
    return new OutboxError(
      `Redis ${place} ${what} (${reasonOf(error)}); see that it runs, and check connection of bullmqOutbox`,
    );
  }
}

async function connect(connection: string | RedisOptions): Promise<Redis> {
  const { Redis } = await loadIoredis();
  const retryStrategy = (times: number): number => Math.min(times * 100, MOST_RECONNECT_MS);
  const atOnce = {
    lazyConnect: true,
    disconnectTimeout: FAREWELL_MS / 2,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
  };
  try {
    return typeof connection === 'string'
      ? new Redis(connection, { retryStrategy, ...atOnce })
      : new Redis({ retryStrategy, ...connection, ...atOnce });
  } catch {
    throw new OutboxError(
      'connection of bullmqOutbox cannot be used; give a URL such as redis://localhost:6379',
    ); // the error has the URL
  }
}

/** `ECONNREFUSED`, `WRONGPASS`, `OOM`: the word that says why. The rest of a message may repeat what was sent. */
function reasonOf(error: unknown): string {
  const { code, message, name } = Object(error) as Partial<Record<'code' | 'message' | 'name', unknown>>;
  if (typeof code === 'string') return code;
  const word = /^[A-Z]{2,}\b/.exec(String(message))?.[0];
  return word ?? (typeof name === 'string' && name !== 'Error' ? name : 'no answer');
}
