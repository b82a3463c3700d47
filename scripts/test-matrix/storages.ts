import { mkdtempSync } from 'node:fs';
import { memoryStorage, type DebateSpaceModuleOptions } from 'nestjs-debate-space';

export type StorageOptions = Pick<DebateSpaceModuleOptions, 'storage' | 'storageKey'>;

/** Redis and Postgres keep no key beside their data. */
const storageKey = 'a key that protects nothing';

/**
 * A host loads the engine that it uses, and no other: it has no other client. The connection is open until the process
 * ends.
 * @param where the URL of the server; of lmdb, how the paths of its folders begin
 * @returns the options for another empty storage
 */
export async function connectStorage(storage: string, where: string): Promise<() => StorageOptions> {
  let count = 0;
  const name = (): string => `cells_${process.pid}_${(count += 1)}`; // the hosts of one run share its server
  switch (storage) {
    case 'memory':
      return () => ({ storage: memoryStorage() });
    case 'lmdb': {
      const { lmdbStorage } = await import('nestjs-debate-space/lmdb');
      return () => ({ storage: lmdbStorage({ path: mkdtempSync(where) }) });
    }
    case 'redis': {
      const { redisStorage } = await import('nestjs-debate-space/redis');
      const { createClient } = await import('redis');
      const client = createClient({ url: where });
      await client.connect();
      const sendCommand = (...args: string[]): Promise<unknown> => client.sendCommand(args);
      return () => ({ storage: redisStorage({ sendCommand, prefix: name() }), storageKey });
    }
    case 'postgres': {
      const { postgresStorage } = await import('nestjs-debate-space/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: where });
      const query = (text: string, values: unknown[]) => pool.query(text, values);
      return () => ({
        storage: postgresStorage({ query, table: `public.${name()}` }),
        storageKey,
      });
    }
    default:
      throw new Error(`no such storage: ${storage}`);
  }
}
