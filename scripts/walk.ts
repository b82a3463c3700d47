// Walks at random over the ways in which sessions end or seem to end, and holds what the plugin reports against what the
// browsers get: scripts/walk. Exit code 0: nothing was missed or invented.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '#support/servers/postgres.js';
import { startRedis } from '#support/servers/redis.js';
import { hosts, installHost, transpile } from './nest-hosts.js';
import { packInto, root } from './packed.js';
import type { WalkSettings } from './walk/run-walk.js';

const SCRIPT = 'scripts/walk/run-walk';
const clients = ['connect-pg-simple', 'connect-redis', 'fast-check', 'libsql', 'pg', 'redis'];
const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    path: { type: 'string' },
    nest: { type: 'string' },
    only: { type: 'string' },
    shrink: { type: 'string', default: '5' },
  },
});
const host = hosts.find(({ nest }) => nest === values.nest);
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const folder = mkdtempSync(join(tmpdir(), 'debate-space-walk-'));
const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
try {
  if (values.nest !== undefined && !host)
    throw new Error('--nest is one of 10, 11, 12; default: this workspace');
  const servers = { redis: redis.url, postgres: postgres.connectionString };
  const settings: WalkSettings = {
    ...values,
    ...servers,
    steps: Number(values.steps),
    shrink: Number(values.shrink),
    seed,
  };
  console.log(`seed ${seed}, ${values.nest === undefined ? 'this workspace' : `NestJS ${values.nest}`}`);
  let file = join(root, `${SCRIPT}.ts`);
  if (host) {
    const tarballs = (await packInto(folder)).map(({ tarball }) => tarball);
    const place = await installHost(host, folder, tarballs, clients);
    transpile(place, host.type, `${SCRIPT}.ts`);
    file = join(place, `${SCRIPT}.js`);
  }
  const more = host ? { execArgv: ['--disable-warning=ExperimentalWarning'] } : {};
  const [code] = (await once(fork(file, [JSON.stringify(settings)], more), 'close')) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  await Promise.all([redis.stop(), postgres.stop()]);
  rmSync(folder, { recursive: true, force: true });
}
