import { parseArgs } from 'node:util';
import { PostgresServer } from './test-crash/postgres.js';
import { RedisServer } from './test-crash/redis.js';
import { runWalk } from './walk/run-walk.js';

const { values } = parseArgs({
  options: {
    steps: { type: 'string', default: '2000' },
    seed: { type: 'string' },
    path: { type: 'string' },
    only: { type: 'string' },
  },
});
const servers = [new RedisServer('everysec'), new PostgresServer()] as const;
for (const server of servers) await server.start();
const seed = Number(values.seed ?? Date.now() % 1_000_000);
console.log(`seed ${seed}`);
try {
  const [redis, postgres] = servers.map(({ url }) => url);
  const isRight = await runWalk({ ...values, redis, postgres, seed, steps: Number(values.steps) });
  process.exitCode = isRight ? 0 : 1;
} finally {
  for (const server of servers) await server.kill();
}
process.exit();
