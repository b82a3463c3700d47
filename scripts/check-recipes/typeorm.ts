// A host with TypeORM that deletes accounts: the erasure exists exactly if the transaction is committed.
import 'reflect-metadata';
import { deepStrictEqual, rejects } from 'node:assert';
import { readFileSync } from 'node:fs';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DebateSpaceErasures, DebateSpaceModule } from 'nestjs-debate-space';
import { postgresStorage } from 'nestjs-debate-space/postgres';
import { DataSource, EntitySchema } from 'typeorm';
import { deleteAccount } from './delete-account.js';
import { existingAccounts } from './existing-accounts.js';

const account = new EntitySchema<{ uid: string }>({
  name: 'account',
  columns: { uid: { type: 'text', primary: true } },
});
const url = process.argv[2] ?? '';
const dataSource = new DataSource({ type: 'postgres', url, entities: [account], synchronize: true });
await dataSource.initialize();
await dataSource.query('CREATE TABLE held (uid text REFERENCES account DEFERRABLE INITIALLY DEFERRED)');
await dataSource.query(`INSERT INTO account VALUES ('alice'), ('bob')`);
await dataSource.query(`INSERT INTO held VALUES ('bob')`); // the commit fails

const options = {
  apiKey: 'an-api-key',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
  authUrl: 'http://127.0.0.1:9',
  baseUrl: 'http://127.0.0.1:9/api/v1',
  storageKey: 'the storage key of a test',
  storage: postgresStorage({ query: (text, values) => dataSource.query(text, values) }),
  worker: false,
};

@Module({ imports: [DebateSpaceModule.forRoot(options)] })
class App {}

const app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
const erasures = app.get(DebateSpaceErasures);

await deleteAccount('alice', dataSource, erasures);
await rejects(deleteAccount('bob', dataSource, erasures), /foreign key/);
const requested: unknown[] = [];
for await (const erasure of erasures.list()) requested.push('total' in erasure && erasure.total);
deepStrictEqual(requested, [1]);
deepStrictEqual(await dataSource.getRepository('account').find(), [{ uid: 'bob' }]);
deepStrictEqual(await existingAccounts(dataSource.getRepository(account), ['alice', 'bob']), ['bob']);
await app.close();
await dataSource.destroy();

const manifest = readFileSync('node_modules/typeorm/package.json', 'utf8');
const { version } = JSON.parse(manifest) as { readonly version: string };
console.log(
  `a host with TypeORM ${version}: an erasure in the transaction, and the accounts of orphans, by the documentation’s snippets`,
);
