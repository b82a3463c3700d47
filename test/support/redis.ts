import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from './free-port.js';
import { programOf } from './program.js';

/** The Redis server of this machine, if it has one. */
export const redisServer = programOf('redis-server', 'Redis');

export interface RunningRedis {
  readonly url: string;
  stop(): Promise<void>;
}

/** A Redis of its own, empty, on a port that the system chose. */
export async function startRedis(): Promise<RunningRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'redis-'));
  const port = await freePort();
  const options = { port, bind: '127.0.0.1', dir: directory, save: '', databases: 10_000 };
  const settings = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn(redisServer.path ?? 'redis-server', settings, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface(server.stdout)) if (line.includes('Ready to accept')) break;
  server.stdout.resume();
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      server.kill();
      if (server.exitCode === null) await once(server, 'exit');
      await rm(directory, { recursive: true });
    },
  };
}
