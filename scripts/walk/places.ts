// Where the sessions of a walk are, and the storage that the instances of its app share.
import fastifySession from '@fastify/session';
import createPostgresStore from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { memoryStorage, type StorageEngine } from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { sqliteStorage } from 'nestjs-debate-space/sqlite';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createClient } from 'redis';
import { sharedStores } from '#support/stores/shared-stores.js';
import { slowStore } from './slow-store.js';
import type { Configuration, Platform } from './configurations.js';

export interface Place {
  /** One store object for each instance. */
  readonly stores: readonly object[];
  /** The users of all sessions, by session id: read past the stores. */
  rows(): Promise<ReadonlyMap<string, string>>;
  /** For the option `storage` of each instance. */
  readonly storage: StorageEngine;
}

/** The servers of a walk: those that it has. */
export interface Servers {
  readonly redis?: string | undefined;
  readonly postgres?: string | undefined;
}

interface Row {
  readonly user?: { readonly uid: string };
  readonly passport?: { readonly user?: string };
}

const LATENCY_MS = 4;
const userOf = ({ user, passport }: Row): string | undefined => user?.uid ?? passport?.user;
const usersOf = (rows: Iterable<readonly [sid: string, row: Row]>): Map<string, string> =>
  new Map(
    [...rows].flatMap(([sid, row]) => {
      const user = userOf(row);
      return user === undefined ? [] : [[sid, user] as const];
    }),
  );

/** Opens an empty place for each walk. */
export class Places {
  readonly #servers: Servers;
  #redis: ReturnType<ReturnType<typeof createClient>['connect']> | undefined;
  #pool: pg.Pool | undefined;
  readonly #folder = mkdtempSync(join(tmpdir(), 'debate-space-walk-'));
  #count = 0;

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  async open({ store, platform, instances }: Configuration): Promise<Place> {
    this.#count += 1;
    if (store === 'redis') return this.#inRedis(instances);
    if (store === 'postgres') return this.#inPostgres(instances);
    return inMemory(platform, instances, store === 'slow memory');
  }

  async close(): Promise<void> {
    (await this.#redis)?.destroy();
    await this.#pool?.end();
    rmSync(this.#folder, { recursive: true });
  }

  async #inRedis(instances: number): Promise<Place> {
    this.#redis ??= createClient({ url: this.#servers.redis ?? '' }).connect();
    const client = await this.#redis;
    const prefix = `walk-${process.pid}-${this.#count}:`;
    const newStore = (): RedisStore => new RedisStore({ client, prefix });
    return {
      stores: Array.from({ length: instances }, newStore),
      rows: async () => {
        const names = await client.keys(`${prefix}*`);
        const texts = names.length === 0 ? [] : await client.mGet(names);
        return usersOf(
          texts.flatMap((text, n) =>
            text === null ? [] : [[String(names[n]).slice(prefix.length), JSON.parse(text) as Row] as const],
          ),
        );
      },
      storage: sqliteStorage({ path: join(this.#folder, `${this.#count}.db`) }),
    };
  }

  async #inPostgres(instances: number): Promise<Place> {
    this.#pool ??= new pg.Pool({ connectionString: this.#servers.postgres ?? '', max: 8 });
    const pool = this.#pool;
    const PostgresStore = createPostgresStore(session);
    const tableName = `walk_${process.pid}_${this.#count}`;
    const schema = `of_${tableName}`;
    await pool.query(`CREATE SCHEMA ${schema}`);
    await pool.query(
      `CREATE TABLE ${tableName} (sid text PRIMARY KEY, sess json NOT NULL, expire timestamp(6) NOT NULL)`,
    );
    const newStore = (): object => new PostgresStore({ pool, tableName, pruneSessionInterval: false });
    return {
      stores: Array.from({ length: instances }, newStore),
      rows: async () => {
        // What has run out is not there any more, as for the store itself.
        const query = `SELECT sid, sess FROM ${tableName} WHERE expire > now()`;
        const { rows } = await pool.query<{ sid: string; sess: Row }>(query);
        return usersOf(rows.map(({ sid, sess }) => [sid, sess] as const));
      },
      storage: postgresStorage({ pool, schema }),
    };
  }
}

function inMemory(platform: Platform, instances: number, isSlow: boolean): Place {
  const slowed = (store: object): object =>
    isSlow ? slowStore(() => 0.5, LATENCY_MS, store as session.MemoryStore) : store;
  if (platform === 'Fastify') {
    const sessions = new Map<string, Row>();
    const { MemoryStore } = fastifySession as unknown as {
      MemoryStore: new (sessions: Map<string, Row>) => object;
    };
    const stores = Array.from({ length: instances }, () => slowed(new MemoryStore(sessions)));
    return { stores, rows: () => Promise.resolve(usersOf(sessions)), storage: sharedMemory() };
  }
  const stores = sharedStores(instances);
  const { sessions } = stores[0] as unknown as { sessions: Record<string, string> };
  // Its own `clear` would take new rows, which the other stores do not have.
  const clear = (done?: () => void): void => {
    for (const sid of Object.keys(sessions)) Reflect.deleteProperty(sessions, sid);
    if (done) setImmediate(done);
  };
  for (const store of stores) Object.assign(store, { clear });
  const rows = (): Map<string, string> =>
    usersOf(Object.entries(sessions).map(([sid, text]) => [sid, JSON.parse(text) as Row] as const));
  return { stores: stores.map(slowed), rows: () => Promise.resolve(rows()), storage: sharedMemory() };
}

/** Both instances open the same storage, which the instance that stops first leaves open. */
function sharedMemory(): StorageEngine {
  const memory = memoryStorage();
  let opened: ReturnType<StorageEngine['open']> | undefined;
  return {
    ...memory,
    open: (application) =>
      (opened ??= memory.open(application).then((open) => {
        open.storage.close = () => Promise.resolve();
        return open;
      })),
  };
}
