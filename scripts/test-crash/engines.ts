import { memoryStorage, type DebateSpaceModuleOptions, type StorageEngine } from 'nestjs-debate-space';

export type EngineName = 'memory' | 'lmdb' | 'redis' | 'postgres';

type StorageOptions = Pick<DebateSpaceModuleOptions, 'storageKey'> & { readonly storage: StorageEngine };

/** Redis and Postgres keep no key beside their data. */
const storageKey = 'a key that protects nothing';

/** The options of an app process that choose its storage. A host that does not use an engine never loads it. */
export async function storageOptions(where: {
  readonly engine: EngineName;
  readonly place: string;
}): Promise<StorageOptions> {
  const { engine, place } = where;
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
      const sendCommand = (...args: string[]): Promise<unknown> => client.sendCommand(args);
      return { storage: redisStorage({ sendCommand, prefix: 'scripts' }), storageKey };
    }
    case 'postgres': {
      const { postgresStorage } = await import('nestjs-debate-space/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: place });
      pool.on('error', () => undefined); // Postgres itself is killed, too
      const query = (text: string, values: unknown[]): Promise<unknown> => pool.query(text, values);
      return { storage: postgresStorage({ query }), storageKey };
    }
    default:
      throw new Error(`no such engine: ${String(engine)}`);
  }
}
