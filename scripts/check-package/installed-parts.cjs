// What depends on the releases that a host has installed: every entry loads by require and by import; SQLite says which package
// it lacks; undici has what the plugin takes. `optional`: libsql and Terminus are installed as well, and are used.
const assert = require('node:assert/strict');
const { mkdtempSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');

const hasOptional = process.argv[2] === 'optional';
const plugin = createRequire(require.resolve('nestjs-debate-space/package.json'));

async function main() {
  for (const entry of ['mysql', 'postgres', 'sqlite', 'opentelemetry']) {
    const required = require(`nestjs-debate-space/${entry}`);
    const imported = await import(`nestjs-debate-space/${entry}`);
    for (const name of Object.keys(required)) assert.equal(imported[name], required[name], name);
  }
  await trySqlite();
  const undici = tryUndici();
  const terminus = hasOptional ? await tryTerminus() : 'none';
  console.log(`undici ${undici}, Terminus ${terminus}`);
}

async function trySqlite() {
  const { sqliteStorage } = require('nestjs-debate-space/sqlite');
  const path = join(mkdtempSync(join(process.cwd(), 'storage-')), 'debate-space.db');
  const opening = sqliteStorage({ path }).open('host');
  if (hasOptional || process.getBuiltinModule('node:sqlite') !== undefined)
    await (await opening).storage.close();
  else await assert.rejects(opening, /npm install libsql/);
}

/** By its public path, and without a change to the host's fetch. */
function tryUndici() {
  Reflect.get(globalThis, 'Response'); // as the plugin does
  const { Agent, getGlobalDispatcher, Pool } = plugin('undici');
  for (const method of ['dispatch', 'destroy'])
    assert.equal(typeof Pool.prototype[method], 'function', method);
  assert.ok(!(getGlobalDispatcher() instanceof Agent), 'undici replaces the dispatcher of fetch');
  return plugin('undici/package.json').version;
}

/** The indicator in a health check: healthy while the service is away, unhealthy when down. */
async function tryTerminus() {
  const { NestFactory } = require('@nestjs/core');
  const { HealthCheckService, TerminusModule } = require('@nestjs/terminus');
  const { DebateSpaceHealth, DebateSpaceModule } = require('nestjs-debate-space');
  const options = {
    apiKey: 'a',
    secretKey: 'a secret key that is long enough for HS256',
    applicationName: 'demo',
  };
  const debateSpace = DebateSpaceModule.forRoot({ ...options, authUrl: 'http://127.0.0.1:1' });
  const module = { module: class App {}, imports: [debateSpace, TerminusModule.forRoot({ logger: false })] };
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const terminus = await app.resolve(HealthCheckService);
  const check = (downAfterMs) =>
    terminus.check([() => app.get(DebateSpaceHealth).indicator('debateSpace', { downAfterMs })]);
  assert.equal((await check(1e6)).status, 'ok');
  await assert.rejects(check(-1), (error) => {
    assert.equal(error.getStatus(), 503);
    assert.equal(error.getResponse().error.debateSpace.state, 'down');
    return true;
  });
  await app.close();
  return require('@nestjs/terminus/package.json').version;
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
