import { join } from 'node:path';
import { memoryStorage, type DebateSpaceModuleOptions } from 'nestjs-debate-space';

export type StorageOptions = Pick<DebateSpaceModuleOptions, 'storage' | 'storageKey'>;

/**
 * A host loads the engine that it uses, and no other: it has no other client. The connection is open until the process
 * ends.
 * @param where the URL of the server, or a folder
 * @returns the options for another empty storage
 */
export async function connectStorage(storage: string, where: string): Promise<() => Promise<StorageOptions>> {
  let count = 0;
  const name = (): string => `cells_${process.pid}_${(count += 1)}`; // the hosts of one run share its server
  switch (storage) {
    case 'memory':
      return () => Promise.resolve({ storage: memoryStorage() });
    case 'sqlite': {
      const { sqliteStorage } = await import('nestjs-debate-space/sqlite');
      return () => Promise.resolve({ storage: sqliteStorage({ path: join(where, `${name()}.db`) }) });
    }
    case 'postgres': {
      const { postgresStorage } = await import('nestjs-debate-space/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: where });
      return async () => {
        const schema = name();
        await pool.query(`CREATE SCHEMA ${schema}`);
        return { storage: postgresStorage({ pool, schema }), storageKey: 'a key that protects nothing' };
      };
    }
    case 'mysql': {
      const { mysqlStorage } = await import('nestjs-debate-space/mysql');
      const { createPool } = await import('mysql2/promise');
      const pool = createPool(where);
      const storageKey = 'a key that protects nothing';
      return () => Promise.resolve({ storage: mysqlStorage({ pool, prefix: `${name()}_` }), storageKey });
    }
    default:
      throw new Error(`no such storage: ${storage}`);
  }
}
