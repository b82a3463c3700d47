import { resolve } from 'node:path';
import type { OnApplicationShutdown } from '@nestjs/common';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { lmdbStorage } from 'nestjs-debate-space/lmdb';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { redisStorage } from 'nestjs-debate-space/redis';
import pg from 'pg';
import { createClient } from 'redis';
import { StartError } from '../start-error.js';

/** Where nestjs-debate-space keeps what waits, and the connection to it. */
export class Storage implements OnApplicationShutdown {
  private constructor(
    readonly engine: StorageEngine,
    /** The setting, with an absolute folder. */
    readonly setting: string,
    private readonly close: () => Promise<void> = () => Promise.resolve(),
  ) {}

  /**
   * @param setting `memory`, `lmdb:<folder>`, or the URL of a Redis or a Postgres
   * @param folder what relative paths start from
   * @throws {StartError} when the setting cannot be understood, or the server cannot be reached
   */
  static async open(setting: string, folder: string): Promise<Storage> {
    if (setting === 'memory') return new Storage(memoryStorage(), setting);
    if (/^lmdb:./.test(setting)) {
      const path = resolve(folder, setting.slice('lmdb:'.length));
      return new Storage(lmdbStorage({ path }), `lmdb:${path}`);
    }
    if (/^rediss?:/.test(setting)) return reached(() => Storage.#inRedis(setting));
    if (/^postgres(ql)?:/.test(setting)) return reached(() => Storage.#inPostgres(setting));
    throw new StartError(
      'DEBATE_SPACE_STORAGE cannot be understood.\nhint: it must be memory, lmdb:<folder>, redis://… or postgres://…',
    );
  }

  static async #inRedis(url: string): Promise<Storage> {
    let isConnected = false;
    const reconnectStrategy = (retries: number): number | false =>
      isConnected ? Math.min(100 * 2 ** retries, 2_000) : false;
    const client = createClient({ url, socket: { reconnectStrategy } });
    client.on('error', () => undefined); // the library says what it cannot store
    await client.connect();
    isConnected = true;
    return new Storage(
      redisStorage({ sendCommand: (...args) => client.sendCommand(args) }),
      url,
      async () => {
        if (client.isOpen) client.destroy();
        return Promise.resolve();
      },
    );
  }

  static async #inPostgres(connectionString: string): Promise<Storage> {
    const pool = new pg.Pool({ connectionString });
    pool.on('error', () => undefined); // the next query takes another connection
    await pool.query('SELECT 1');
    return new Storage(
      postgresStorage({ query: (text, values) => pool.query(text, values) }),
      connectionString,
      () => pool.end(),
    );
  }

  /** When nestjs-debate-space is closed: see StorageModule. */
  async onApplicationShutdown(): Promise<void> {
    await this.close();
  }
}

/** The message of a client is not shown: it may have the URL, with the password. */
async function reached(open: () => Promise<Storage>): Promise<Storage> {
  try {
    return await open();
  } catch (error) {
    const { code = 'no answer' } = Object(error) as { code?: string };
    throw new StartError(
      `The storage cannot be reached (${code}).\nhint: compare address, user and password in DEBATE_SPACE_STORAGE.`,
    );
  }
}
