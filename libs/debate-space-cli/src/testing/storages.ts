import { createPool } from 'mysql2/promise';
import { mariadbServer, startMariadb } from '#support/servers/mariadb.js';
import { postgresPool, postgresServer, startPostgres } from '#support/servers/postgres.js';
import { run } from './command-line.js';

export const storageKey = { DEBATE_SPACE_STORAGE_KEY: 'a-storage-key-of-a-test' };

/** A server with the tables that `debate-space storage migration` prints. */
export interface StorageServer {
  /** The variables that name the storage. */
  readonly env: NodeJS.ProcessEnv;
  query(text: string): Promise<unknown>;
  crash(): Promise<void>;
  stop(): Promise<void>;
}

const migration = async (options: string): Promise<string> =>
  (await run(`storage migration --dialect ${options}`)).out;

async function inPostgres(): Promise<StorageServer> {
  const server = await startPostgres();
  const pool = postgresPool(server);
  await pool.query('CREATE SCHEMA debate');
  await pool.query(await migration('postgres --schema debate'));
  return {
    env: {
      ...storageKey,
      DEBATE_SPACE_STORAGE: server.connectionString,
      DEBATE_SPACE_STORAGE_SCHEMA: 'debate',
    },
    query: async (text) => (await pool.query<object>(text)).rows,
    crash: () => server.crash(),
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

async function inMariadb(): Promise<StorageServer> {
  const server = await startMariadb();
  const pool = createPool({ uri: server.uri, multipleStatements: true });
  await pool.query(await migration('mysql --prefix app_'));
  return {
    env: {
      ...storageKey,
      DEBATE_SPACE_STORAGE: server.uri.replace('mysql:', 'mariadb:'),
      DEBATE_SPACE_STORAGE_PREFIX: 'app_',
    },
    query: async (text) => (await pool.query(text))[0],
    crash: () => server.crash(),
    stop: async () => {
      await pool.end();
      await server.stop();
    },
  };
}

/** The servers of this machine; the tests of one that is missing are skipped. */
export const storageServers = [
  { engine: 'postgres', describe: postgresServer.describe, start: inPostgres },
  { engine: 'mysql', describe: mariadbServer.describe, start: inMariadb },
] as const;
