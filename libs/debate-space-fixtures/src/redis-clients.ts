import { Cluster, Redis } from 'ioredis';
import { createCluster, RESP_TYPES } from 'redis';
import type { SendCommand } from 'durable-jobs/redis';
import { redisClient } from './redis.js';
import type { RunningRedisCluster } from './redis-cluster.js';

export interface RedisConnection {
  readonly sendCommand: SendCommand;
  close(): Promise<void>;
}

export interface RedisClientKind<Server> {
  readonly name: string;
  connect(server: Server): Promise<RedisConnection>;
}

type NodeClient = RedisClientKind<{ readonly url: string }>;

/** The clients of hosts, as `redisStorage` takes them. */
export const redisClients: readonly [NodeClient, ...NodeClient[]] = [
  {
    name: 'node-redis',
    connect: async ({ url }) => {
      const client = quiet(redisClient(url));
      await client.connect();
      return { sendCommand: (...args) => client.sendCommand(args), close: () => client.close() };
    },
  },
  {
    name: 'node-redis with buffers',
    connect: async ({ url }) => {
      const client = quiet(redisClient(url));
      await client.connect();
      const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
      return { sendCommand: (...args) => buffers.sendCommand(args), close: () => client.close() };
    },
  },
  {
    name: 'ioredis',
    connect: ({ url }) => {
      const client = quiet(new Redis(url));
      return Promise.resolve({
        sendCommand: (command: string, ...args: string[]) => client.call(command, ...args),
        close: () => disconnected(client),
      });
    },
  },
  {
    name: 'ioredis with buffers',
    connect: ({ url }) => {
      const client = quiet(new Redis(url));
      return Promise.resolve({
        sendCommand: (command: string, ...args: string[]) => client.callBuffer(command, ...args),
        close: () => disconnected(client),
      });
    },
  },
];

export const redisClusterClients: readonly RedisClientKind<RunningRedisCluster>[] = [
  {
    name: 'node-redis',
    connect: async ({ nodes }) => {
      const rootNodes = nodes.map((socket) => ({ socket }));
      const cluster = createCluster({ rootNodes, defaults: { socket: { connectTimeout: 60_000 } } });
      await cluster.connect();
      return {
        sendCommand: (...args) => cluster.sendCommand(args[3], false, args),
        close: () => cluster.close(),
      };
    },
  },
  {
    name: 'ioredis',
    connect: ({ nodes }) => {
      const cluster = new Cluster([...nodes]);
      return Promise.resolve({
        sendCommand: (command: string, ...args: string[]) => cluster.call(command, ...args),
        close: () => disconnected(cluster),
      });
    },
  },
];

/** A server may be away for a while. */
function quiet<Client extends { on(event: 'error', listener: () => void): unknown }>(client: Client): Client {
  client.on('error', () => undefined);
  return client;
}

async function disconnected(client: Redis | Cluster): Promise<void> {
  await client.quit();
}
