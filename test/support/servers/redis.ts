import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'redis';
import { freePort } from './free-port.js';
import { programOf } from './program.js';
import { waitForLine } from './wait-for-line.js';

/** The Redis server of this machine, if it has one. */
export const redisServer = programOf('redis-server', 'Redis');

export interface RunningRedis {
  readonly port: number;
  readonly url: string;
  /** Kills it, as a crash would; its files stay. */
  crash(): Promise<void>;
  /** After a crash: at the same place, with the same files. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A client for it. On a busy machine even a connection to this machine takes seconds: node-redis gives up after five. */
export function redisClient(url: string, database = 0) {
  return createClient({ url, database, socket: { connectTimeout: 60_000 } });
}

/** A Redis of its own, empty, on a port that the system chose. @param more settings of redis.conf */
export async function startRedis(more: Record<string, string> = {}): Promise<RunningRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'redis-'));
  const port = await freePort();
  const options = { port, bind: '127.0.0.1', dir: directory, save: '', databases: 10_000, ...more };
  let server = await launch(options);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    crash: () => end('SIGKILL'),
    restart: async () => {
      server = await launch(options);
    },
    stop: async () => {
      await end('SIGTERM');
      await rm(directory, { recursive: true });
    },
  };
}

async function launch(options: Record<string, string | number>) {
  const settings = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn(redisServer.path ?? 'redis-server', settings, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await waitForLine('Redis', server.stdout, 'Ready to accept');
  return server;
}
