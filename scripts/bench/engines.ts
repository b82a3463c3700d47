import type { DebateSpaceModuleOptions, StorageEngine } from 'nestjs-debate-space';
import type { EngineName } from '../test-crash/engines.js';

/** The options of an app that choose its storage. */
export type StorageOptions = Pick<DebateSpaceModuleOptions, 'storageKey'> & {
  readonly storage: StorageEngine;
};

export interface OpenEngine extends StorageOptions {
  /** Makes one durable row of 400 bytes, through the same driver or pool as the storage. */
  readonly bareWrite: () => Promise<(key: string) => unknown>;
}

const VALUE = 'x'.repeat(400);
const CREATE = 'CREATE TABLE IF NOT EXISTS bare (name varchar(100) PRIMARY KEY, value text NOT NULL)';
const storageKey = 'a key that protects nothing';

/** @param place a path, or the address of a server */
export async function openEngine(engine: EngineName, place: string): Promise<OpenEngine> {
  switch (engine) {
    case 'memory': {
      const { memoryStorage } = await import('nestjs-debate-space');
      return { storage: memoryStorage(), storageKey, bareWrite: () => Promise.resolve(() => undefined) };
    }
    case 'sqlite': {
      const { sqliteStorage } = await import('nestjs-debate-space/sqlite');
      const { openDriver } = await import('../../libs/debate-space/src/storage/sqlite-file.js');
      const bareWrite = async () => {
        const driver = await openDriver(`${place}.bare`); // with the same settings
        driver.exec(CREATE);
        const insert = driver.prepare('INSERT INTO bare VALUES (?, ?)');
        return (key: string) => insert.run(key, VALUE);
      };
      return { storage: sqliteStorage({ path: place }), storageKey, bareWrite };
    }
    case 'postgres': {
      const { postgresStorage } = await import('nestjs-debate-space/postgres');
      const { default: pg } = await import('pg');
      const pool = new pg.Pool({ connectionString: place }).on('error', () => undefined);
      const bareWrite = async () => {
        await pool.query(CREATE);
        return (key: string) => pool.query('INSERT INTO bare VALUES ($1, $2)', [key, VALUE]);
      };
      return { storage: postgresStorage({ pool }), storageKey, bareWrite };
    }
    case 'mariadb': {
      const { mysqlStorage } = await import('nestjs-debate-space/mysql');
      const { createPool } = await import('mysql2/promise');
      const pool = createPool(place);
      const bareWrite = async () => {
        await pool.query(CREATE);
        return (key: string) => pool.query('INSERT INTO bare VALUES (?, ?)', [key, VALUE]);
      };
      return { storage: mysqlStorage({ pool }), storageKey, bareWrite };
    }
  }
}
