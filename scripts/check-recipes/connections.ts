// A host with each recipe of docs/storage-connections.md: a logout is stored and delivered, and an erasure exists if and only if
// the host's transaction is committed. Arguments: the URL of a Postgres, and of a MySQL or MariaDB; without one, it is left out.
import 'reflect-metadata';
import { deepStrictEqual, rejects } from 'node:assert';
import { MikroORM as MikroOrmMysql } from '@mikro-orm/mysql';
import { MikroORM } from '@mikro-orm/postgresql';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { PrismaMariaDb } from '@prisma/adapter-mariadb';
import { PrismaPg } from '@prisma/adapter-pg';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { drizzle as drizzleMysql } from 'drizzle-orm/mysql2';
import { drizzle } from 'drizzle-orm/node-postgres';
import knex from 'knex';
import { createPool } from 'mysql2/promise';
import {
  DebateSpaceErasures,
  DebateSpaceModule,
  DebateSpaceService,
  type HostTransaction,
  type StorageEngine,
} from 'nestjs-debate-space';
import { mysqlStorage } from 'nestjs-debate-space/mysql';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import pg from 'pg';
import { lastValueFrom } from 'rxjs';
import { DataSource, EntitySchema } from 'typeorm';
import * as drizzleRecipe from './drizzle.js';
import { existingAccounts } from './existing-accounts.js';
import { PrismaClient as PrismaMysql } from './generated/prisma-mysql/client.js';
import { PrismaClient } from './generated/prisma/client.js';
import * as knexRecipe from './knex.js';
import * as knexMysqlRecipe from './knex-mysql.js';
import * as mikroOrmRecipe from './mikro-orm.js';
import * as mikroOrmMysqlRecipe from './mikro-orm-mysql.js';
import * as prismaRecipe from './prisma.js';
import * as prismaMysqlRecipe from './prisma-mysql.js';
import * as typeormRecipe from './typeorm.js';
import * as typeormMysqlRecipe from './typeorm-mysql.js';

interface Connection {
  readonly storage: StorageEngine;
  /** Runs `work` in a transaction of the host's. */
  transaction(work: (transaction: HostTransaction) => Promise<unknown>): Promise<unknown>;
  close(): Promise<unknown>;
}
type Run<T> = (connection: T, text: string, values?: unknown[]) => Promise<unknown>;
type Connect = (url: string) => Connection | Promise<Connection>;

const through = <T>(run: Run<T>, connection: T): HostTransaction => ({
  query: (text, values) => run(connection, text, values),
});

/** Of a driver: what begins, commits or rolls back is a statement. */
async function inTransaction(client: HostTransaction, work: (client: HostTransaction) => Promise<unknown>) {
  await client.query('BEGIN');
  try {
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

const typeorm =
  (type: 'postgres' | 'mysql', { storageOf }: typeof typeormRecipe): Connect =>
  async (url) => {
    const columns = { uid: { type: 'varchar', length: 36, primary: true } } as const;
    const account = new EntitySchema<{ uid: string }>({ name: 'account', columns });
    const dataSource = new DataSource({ type, url, entities: [account], synchronize: true });
    await dataSource.initialize();
    const accounts = dataSource.getRepository(account);
    await accounts.save({ uid: 'bob' });
    deepStrictEqual(await existingAccounts(accounts, ['alice', 'bob']), ['bob']); // of docs/erasure-recipes.md
    return {
      storage: storageOf(dataSource),
      transaction: (work) => dataSource.transaction((manager) => work(manager)),
      close: () => dataSource.destroy(),
    };
  };

const withKnex =
  (client: string, { run, storageOf }: typeof knexRecipe): Connect =>
  (connection) => {
    const db = knex({ client, connection });
    const transaction: Connection['transaction'] = (work) => db.transaction((trx) => work(through(run, trx)));
    return { storage: storageOf(db), transaction, close: () => db.destroy() };
  };

const postgres: Readonly<Record<string, Connect>> = {
  pg: (connectionString) => {
    const pool = new pg.Pool({ connectionString });
    const transaction: Connection['transaction'] = async (work) => {
      const client = await pool.connect();
      await inTransaction(client, work).finally(() => {
        client.release();
      });
    };
    return { storage: postgresStorage({ pool }), transaction, close: () => pool.end() };
  },
  typeorm: typeorm('postgres', typeormRecipe),
  prisma: (connectionString) => {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) });
    return {
      storage: prismaRecipe.storageOf(prisma),
      transaction: (work) => prisma.$transaction((tx) => work(through(prismaRecipe.run, tx))),
      close: () => prisma.$disconnect(),
    };
  },
  drizzle: (url) => {
    const db = drizzle(url);
    return {
      storage: postgresStorage({ pool: db.$client }),
      transaction: (work) => db.transaction((tx) => work(through(drizzleRecipe.run, tx))),
      close: () => db.$client.end(),
    };
  },
  knex: withKnex('pg', knexRecipe),
  'mikro-orm': async (clientUrl) => {
    const orm = await MikroORM.init({ clientUrl, discovery: { warnWhenNoEntities: false } });
    return {
      storage: mikroOrmRecipe.storageOf(orm.em),
      transaction: (work) => orm.em.fork().transactional((tx) => work(through(mikroOrmRecipe.run, tx))),
      close: () => orm.close(),
    };
  },
};

const mysql: Readonly<Record<string, Connect>> = {
  mysql2: (uri) => {
    const pool = createPool({ uri });
    const transaction: Connection['transaction'] = async (work) => {
      const connection = await pool.getConnection();
      await inTransaction(connection, work).finally(() => {
        connection.release();
      });
    };
    return { storage: mysqlStorage({ pool }), transaction, close: () => pool.end() };
  },
  typeorm: typeorm('mysql', typeormMysqlRecipe),
  prisma: (url) => {
    const prisma = new PrismaMysql({ adapter: new PrismaMariaDb(url.replace(/^mysql:/, 'mariadb:')) });
    return {
      storage: prismaMysqlRecipe.storageOf(prisma),
      transaction: (work) => prisma.$transaction((tx) => work(through(prismaMysqlRecipe.run, tx))),
      close: () => prisma.$disconnect(),
    };
  },
  drizzle: (url) => {
    const db = drizzleMysql(url);
    const pool = db.$client.promise();
    return {
      storage: mysqlStorage({ pool }),
      transaction: (work) => db.transaction((tx) => work(through(drizzleRecipe.run, tx))),
      close: () => pool.end(),
    };
  },
  knex: withKnex('mysql2', knexMysqlRecipe),
  'mikro-orm': async (clientUrl) => {
    const orm = await MikroOrmMysql.init({ clientUrl, discovery: { warnWhenNoEntities: false } });
    return {
      storage: mikroOrmMysqlRecipe.storageOf(orm.em),
      transaction: (work) => orm.em.fork().transactional((tx) => work(through(mikroOrmMysqlRecipe.run, tx))),
      close: () => orm.close(),
    };
  },
};

async function check(applicationName: string, { storage, transaction, close }: Connection): Promise<void> {
  const keys = {
    apiKey: 'an-api-key',
    secretKey: 'a secret key that is long enough for HS256',
    applicationName,
  };
  const service = await DebateSpaceSimulator.start({ ...keys, users: [{ uid: 'bob' }] });
  const options = { ...keys, authUrl: service.url, storage, storageKey: 'the storage key of a test' };

  @Module({ imports: [DebateSpaceModule.forRoot(options)] })
  class Host {}

  const app = await NestFactory.createApplicationContext(Host, { logger: ['error'], abortOnError: false });
  await app.get(DebateSpaceService).logoutUser('alice');
  await service.received.waitFor(({ uid, accepted }) => uid === 'alice' && accepted, { timeoutMs: 30_000 });

  const erasures = app.get(DebateSpaceErasures);
  const request = (reference: string, tx: HostTransaction) =>
    erasures.request({ uid: 'bob', mode: 'delete', reference, transaction: tx });
  const rolledBack = transaction(async (tx) => {
    await request('rolled back', tx);
    throw new Error('changed my mind');
  });
  await rejects(rolledBack, /changed my mind/);
  await transaction((tx) => request('committed', tx));
  const { done } = await lastValueFrom(erasures.progress('committed'));
  deepStrictEqual(done, 1);
  await rejects(erasures.status('rolled back'), { code: 'ERR_DEBATE_SPACE_UNKNOWN_ERASURE' });
  await app.close();
  await service.stop();
  await close();
}

for (const [index, [server, connections]] of Object.entries({ postgres, mysql }).entries()) {
  const url = process.argv[2 + index] ?? '';
  if (url === '') continue;
  for (const [name, connect] of Object.entries(connections))
    await check(`${name}-${server}`, await connect(url));
  console.log(`✓ ${server}: ${Object.keys(connections).join(', ')}`);
}
