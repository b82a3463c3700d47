// The databases of the harness as data. A new engine is an entry here, and a case of `openStorage` in app.ts.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startMariadb } from '#support/servers/mariadb.js';
import { startPostgres } from '#support/servers/postgres.js';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import type { Cleanup } from './cleanup.js';

export type EngineName = 'memory' | 'sqlite' | 'postgres' | 'mariadb';
export const durableEngines: readonly EngineName[] = ['sqlite', 'postgres', 'mariadb'];

/** What an operator does with the server. Each of the last three cuts the connections of the apps, as a failover does. */
type Order = 'set up' | 'read-only' | 'one connection' | 'writable';

type Running = Omit<Awaited<ReturnType<typeof startMariadb>>, 'uri'>;

interface ServerKind {
  /** Starts a server that syncs every commit. */
  readonly start: () => Promise<Running>;
  /** For the apps. */
  readonly url: (port: number) => string;
  /** Runs statements as a user who is never limited. */
  readonly operate: (port: number, statements: readonly string[]) => Promise<void>;
  readonly orders: Readonly<Record<Order, readonly string[]>>;
}

const cutPostgres = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
const cutMariadb = 'KILL USER app';
const mariadbLimit = (count: number): string => `ALTER USER app@'%' WITH MAX_USER_CONNECTIONS ${count}`;

const servers: Partial<Record<EngineName, ServerKind>> = {
  postgres: {
    start: () => startPostgres('on'),
    url: (port) => `postgres://app@127.0.0.1:${port}/app`,
    operate: async (port, statements) => {
      const client = new pg.Client(`postgres://postgres@127.0.0.1:${port}/postgres`);
      await client.connect();
      for (const statement of statements) await client.query(statement);
      await client.end();
    },
    orders: {
      'set up': ['CREATE ROLE app LOGIN', 'CREATE DATABASE app OWNER app'],
      'read-only': ['ALTER ROLE app SET default_transaction_read_only = on', cutPostgres],
      'one connection': ['ALTER ROLE app CONNECTION LIMIT 1', cutPostgres],
      writable: ['ALTER ROLE app RESET ALL', 'ALTER ROLE app CONNECTION LIMIT -1', cutPostgres],
    },
  },
  mariadb: {
    start: () => startMariadb(['--innodb-flush-log-at-trx-commit=1']),
    url: (port) => `mysql://app@127.0.0.1:${port}/app`,
    operate: async (port, statements) => {
      const connection = await createConnection(`mysql://root@127.0.0.1:${port}/app`);
      for (const statement of statements) await connection.query(statement);
      await connection.end();
    },
    orders: {
      'set up': ["CREATE USER app@'%'", "GRANT ALL ON app.* TO app@'%'"],
      'read-only': ['SET GLOBAL read_only = ON', cutMariadb],
      'one connection': [mariadbLimit(1), cutMariadb],
      writable: ['SET GLOBAL read_only = OFF', mariadbLimit(0), cutMariadb],
    },
  },
};

/** Where the storage of a scenario is: the path of a file, or the address of a server. */
export type Place = Readonly<{ url: string; server?: Server }>;

export async function startEngine(name: EngineName, folder: string, cleanup: Cleanup): Promise<Place> {
  const kind = servers[name];
  if (!kind) return { url: join(folder, 'storage.db') };
  const running = await kind.start();
  const server = new Server(kind, running);
  cleanup.add(() => void server.signal('SIGKILL'));
  await server.order('set up');
  return { url: kind.url(running.port), server };
}

/** A database server of a scenario's own. */
export class Server {
  constructor(
    readonly kind: ServerKind,
    readonly running: Running,
  ) {}

  async kill(): Promise<void> {
    await this.signal('SIGKILL');
    await this.running.crash();
  }

  async restart(tries = 50): Promise<void> {
    await this.running.restart().catch(async (error: unknown) => {
      // The kernel needs a moment to remove the processes of a Postgres that was killed.
      if (tries === 0 || !String(error).includes('still in use')) throw error;
      await sleep(100);
      await this.restart(tries - 1);
    });
  }

  /** After `SIGSTOP`, connections stay open and nobody answers; `SIGCONT` ends it. */
  signal(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    const pid = String(this.running.pid);
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
      for (const child of [pid, ...children]) if (child) process.kill(Number(child), signal);
    } catch {
      // The server has ended.
    }
    return Promise.resolve();
  }

  order(order: Order): Promise<void> {
    return this.kind.operate(this.running.port, this.kind.orders[order]);
  }

  async stop(): Promise<void> {
    await this.signal('SIGCONT');
    await this.running.stop();
  }
}
