import { memoryStorage } from 'nestjs-debate-space';

/** Redis and Postgres keep no key beside their data. */
const storageKey = 'a key that protects nothing';

/** The options of an app process that choose its storage. A host that does not use an engine never loads it. */
export async function storageOptions({ engine, place }) {
  switch (engine) {
    case 'memory':
      return { storage: memoryStorage() };
    case 'lmdb': {
      const { lmdbStorage } = await import('nestjs-debate-space/lmdb');
      return { storage: lmdbStorage({ path: place }) };
    }
    case 'redis': {
      const { redisStorage } = await import('nestjs-debate-space/redis');
      const { createClient } = await import('redis');
      const client = createClient({ url: place, socket: { connectTimeout: 60_000 } });
      client.on('error', () => undefined); // Redis itself is killed, too
      await client.connect();
      const sendCommand = (...args) => client.sendCommand(args);
      return { storage: redisStorage({ sendCommand, prefix: 'scripts' }), storageKey };
    }
    case 'postgres': {
      const { postgresStorage } = await import('nestjs-debate-space/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: place });
      pool.on('error', () => undefined); // Postgres itself is killed, too
      return { storage: postgresStorage({ query: (text, values) => pool.query(text, values) }), storageKey };
    }
    default:
      throw new Error(`no such engine: ${engine}`);
  }
}
