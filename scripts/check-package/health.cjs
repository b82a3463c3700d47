// The indicator in the health check of the installed Terminus: healthy while the service is away, unhealthy when down.
const assert = require('node:assert/strict');
const { Module } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const { HealthCheckService, TerminusModule } = require('@nestjs/terminus');
const { DebateSpaceHealth, DebateSpaceModule, memoryStorage } = require('nestjs-debate-space');

let isGone = false;
const memory = memoryStorage();
const storage = {
  ...memory,
  open: async (application) => {
    const opened = await memory.open(application);
    const counts = opened.storage.counts.bind(opened.storage);
    opened.storage.counts = async (kind) => {
      if (isGone) throw new Error('gone');
      return counts(kind);
    };
    return opened;
  },
};

class App {}
const options = {
  apiKey: 'a',
  secretKey: 'a secret key that is long enough for HS256',
  applicationName: 'demo',
};
const debateSpace = DebateSpaceModule.forRoot({ ...options, authUrl: 'http://127.0.0.1:1', storage });
Module({ imports: [debateSpace, TerminusModule.forRoot({ logger: false })] })(App);

async function main() {
  const app = await NestFactory.createApplicationContext(App, { logger: false });
  const terminus = await app.resolve(HealthCheckService);
  const check = () =>
    terminus.check([
      () => app.get(DebateSpaceHealth).indicator('debateSpace', { downAfterMs: isGone ? -1 : 1e6 }),
    ]);
  assert.equal((await check()).status, 'ok');
  isGone = true;
  await assert.rejects(check, (error) => {
    assert.equal(error.getStatus(), 503);
    assert.equal(error.getResponse().error.debateSpace.state, 'down');
    return true;
  });
  await app.close();
  const { version } = require('@nestjs/terminus/package.json');
  console.log(`Terminus ${version} answers 503 when the health is down`);
}

void main();
