// Walks at random over the ways in which sessions end or seem to end, and holds what the plugin reports against what the
// browsers get: libs/debate-space-fixtures/src/walk. Exit code 0: nothing was missed or invented.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hosts, installHost, transpile } from './nest-hosts.js';
import { packInto, root } from './packed.js';
import { PostgresServer } from './test-crash/postgres.js';
import { RedisServer } from './test-crash/redis.js';
import type { WalkSettings } from './walk/run-walk.js';

const SCRIPT = 'scripts/walk/run-walk';
const clients = ['connect-pg-simple', 'connect-redis', 'fast-check', 'pg', 'redis'];
const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    path: { type: 'string' },
    nest: { type: 'string' },
    only: { type: 'string' },
  },
});
const host = hosts.find(({ nest }) => nest === values.nest);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const folder = mkdtempSync(join(tmpdir(), 'debate-space-walk-'));
const servers = [new RedisServer('everysec'), new PostgresServer()] as const;
try {
  if (values.nest !== undefined && !host)
    throw new Error('--nest is one of 10, 11, 12; default: this workspace');
  for (const server of servers) await server.start();
  const [redis, postgres] = servers.map(({ url }) => url);
  const settings: WalkSettings = { ...values, steps: Number(values.steps), seed, redis, postgres };
  console.log(`seed ${seed}, ${values.nest === undefined ? 'this workspace' : `NestJS ${values.nest}`}`);
  let file = join(root, `${SCRIPT}.ts`);
  if (host) {
    const tarballs = packInto(folder).map(({ tarball }) => tarball);
    const place = installHost(host, folder, tarballs, clients);
    transpile(place, host.type, `${SCRIPT}.ts`);
    file = join(place, `${SCRIPT}.js`);
  }
  const more = host ? { execArgv: ['--disable-warning=ExperimentalWarning'] } : {};
  const [code] = (await once(fork(file, [JSON.stringify(settings)], more), 'close')) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  for (const server of servers) await server.kill();
  rmSync(folder, { recursive: true, force: true });
}
