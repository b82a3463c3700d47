import createPostgresStore from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import { randomUUID } from 'node:crypto';
import session from 'express-session';
import pg from 'pg';
import { redisClient } from './redis.js';
import type { OpenedStore, StoreKind } from './store-kinds.js';

const PostgresStore = createPostgresStore(session);

export const storesInRedis = (url: () => string): readonly StoreKind[] => {
  let databases = 0; // in one of its own each store lists its sessions in the same order
  let first: ReturnType<typeof redisClient> | undefined; // to make a client of other options takes milliseconds
  const open = async (): Promise<OpenedStore & { destroy: () => void }> => {
    first ??= redisClient(url());
    const client = await first.duplicate({ database: (databases += 1) }).connect();
    const store = new RedisStore({ client });
    const destroy = (): void => {
      client.destroy();
    };
    return { store, close: () => client.close(), destroy };
  };
  const gone = async (): Promise<OpenedStore> => {
    const { store, destroy } = await open();
    return { store, fail: destroy };
  };
  return [
    { name: 'connect-redis', open },
    {
      name: 'connect-redis whose Redis has gone',
      open: gone,
      fails: true,
      unbearable: (_, { callback, looks }) => !callback && !looks,
    },
  ];
};

export const storesInPostgres = (connectionString: () => string): readonly StoreKind[] => {
  const open = async (): Promise<OpenedStore & { pool: pg.Pool }> => {
    const pool = new pg.Pool({ connectionString: connectionString(), max: 1 }); // one connection keeps the order
    // A client that is just leaving still hears of a server that stops.
    pool.on('connect', (client) => {
      client.on('error', () => undefined);
    });
    pool.on('error', () => undefined); // which reports those of an idle client again
    const schemaName = `of ${randomUUID()}`;
    await pool.query(`CREATE SCHEMA "${schemaName}"`);
    const store = new PostgresStore({
      pool,
      schemaName,
      createTableIfMissing: true,
      pruneSessionInterval: false,
    });
    return { store, pool, close: () => pool.end() };
  };
  const gone = async (): Promise<OpenedStore> => {
    const { store, pool } = await open();
    return { store, fail: () => pool.end() };
  };
  const known: Partial<StoreKind> = {
    lacks: ['all', 'length', 'ids', 'clear'],
    unbearable: (method, { callback }) => method === 'get' && !callback,
  };
  return [
    { name: 'connect-pg-simple', open, ...known },
    {
      name: 'connect-pg-simple whose Postgres has gone',
      open: gone,
      fails: true,
      undecidable: true,
      ...known,
    },
  ];
};
