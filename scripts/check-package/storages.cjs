// The storages in a host: each loads by require and by import, says which server it cannot reach, and which package it lacks.
const assert = require('node:assert/strict');
const { mkdtempSync, rmSync } = require('node:fs');
const { join } = require('node:path');
const mysql = require('nestjs-debate-space/mysql');
const postgres = require('nestjs-debate-space/postgres');
const sqlite = require('nestjs-debate-space/sqlite');

const isInstalled = process.argv[2] === 'installed' || process.getBuiltinModule('node:sqlite') !== undefined;
const away = () => Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
const functions = { query: away, transaction: away };
const refused = (words) => (error) => {
  assert.equal(error.name, 'StorageError', `${error}`);
  assert.match(error.message, words);
  return true;
};

async function main() {
  for (const [subpath, required] of Object.entries({ mysql, postgres, sqlite })) {
    const imported = await import(`nestjs-debate-space/${subpath}`);
    for (const name of Object.keys(required)) assert.equal(imported[name], required[name], name);
  }
  const open = (engine) => () => engine.open('host');
  await assert.rejects(open(mysql.mysqlStorage(functions)), refused(/MySQL failed \(ECONNREFUSED\)/));
  await assert.rejects(
    open(postgres.postgresStorage(functions)),
    refused(/Postgres failed \(ECONNREFUSED\)/),
  );
  assert.match(
    mysql.mysqlMigration({ prefix: 'host_' }),
    /CREATE TABLE IF NOT EXISTS host_debate_space_jobs/,
  );
  assert.match(postgres.postgresMigration({ schema: 'host' }), /CREATE TABLE IF NOT EXISTS/);

  const folder = mkdtempSync(join(process.cwd(), 'storage-'));
  const engine = sqlite.sqliteStorage({ path: join(folder, 'debate-space.db') });
  if (isInstalled) {
    const { storage } = await engine.open('host');
    assert.equal(typeof (await storage.birth()), 'string');
    await storage.close();
  } else await assert.rejects(open(engine), refused(/npm install libsql/));
  rmSync(folder, { recursive: true });
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
