import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort } from './free-port.js';
import { redisServer, startRedis } from './redis.js';

export interface RunningRedisCluster {
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  stop(): Promise<void>;
}

/** A Redis Cluster of three nodes without replicas, ready for commands. */
export async function startRedisCluster(): Promise<RunningRedisCluster> {
  const servers = await Promise.all(
    Array.from({ length: 3 }, async () =>
      // The default, 10,000 above the port, may be no port at all.
      startRedis({ 'cluster-enabled': 'yes', databases: '1', 'cluster-port': String(await freePort()) }),
    ),
  );
  const redisCli = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(join(dirname(redisServer.path ?? ''), 'redis-cli'), args, { timeout: 60_000 }))
      .stdout;
  const addresses = servers.map(({ port }) => `127.0.0.1:${port}`);
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map(async (server) => server.stop()));
  };
  try {
    await redisCli('--cluster', 'create', ...addresses, '--cluster-yes');
    // A node takes commands a while after it has joined.
    for (const { port } of servers) {
      while (!(await redisCli('-p', String(port), 'cluster', 'info')).includes('cluster_state:ok')) {
        await sleep(50);
      }
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    nodes: servers.map(({ port }) => ({ host: '127.0.0.1', port })),
    stop,
  };
}
