import createPostgresStore from 'connect-pg-simple';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { createClient } from 'redis';
import type { StoreKind } from './store-kinds.js';

const PostgresStore = createPostgresStore(session);

export const storesInRedis = (url: () => string): readonly StoreKind[] => [
  {
    name: 'connect-redis',
    open: async () => {
      const client = createClient({ url: url() });
      await client.connect();
      const store = new RedisStore({ client, prefix: `${randomUUID()}:` });
      return { store, close: () => client.close() };
    },
  },
];

export const storesInPostgres = (connectionString: () => string): readonly StoreKind[] => [
  {
    name: 'connect-pg-simple',
    open: async () => {
      const pool = new pg.Pool({ connectionString: connectionString(), max: 4 });
      pool.on('error', () => undefined); // of an idle client, when the server stops
      const schemaName = `of ${randomUUID()}`;
      await pool.query(`CREATE SCHEMA "${schemaName}"`);
      const options = { pool, schemaName, createTableIfMissing: true, pruneSessionInterval: false } as const;
      return { store: new PostgresStore(options), close: () => pool.end() };
    },
  },
];
