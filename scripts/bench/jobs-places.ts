// What the benchmarks of the storages need and must not leave behind: folders, processes, servers. All of it is gone when
// the benchmark is finished, and when it is broken off.
import { fork, type ChildProcess, type Serializable } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { manifestOf } from '../manifest.js';
import type { EngineName } from '../test-crash/engines.js';
import { atExit } from '../test-crash/leftovers.js';
import { temporaryFolder } from '../test-crash/places.js';
import { PostgresServer } from '../test-crash/postgres.js';
import { RedisServer } from '../test-crash/redis.js';
import { Skipped } from '../test-crash/skipped.js';

/** A process, and what its first message has. */
export type Started<First extends object = Serving> = First & { readonly child: ChildProcess };

interface Serving {
  readonly url: string;
}

/** What the first message of each program has. */
interface Programs {
  './host.ts': { readonly urls: readonly string[] };
  './delivery-host.ts': { readonly isReady: true };
  './delivery-service.ts': Serving;
  './logout-writes.ts': object;
  './logout-host.ts': Serving;
  './logout-service.ts': Serving;
  './jobs-process.ts': object;
  './scale-service.ts': Serving;
}

/** Where each engine keeps its data; `undefined` without its server. */
export type Places = Readonly<Record<EngineName, string | undefined>>;

/** A process of its own, and the first message it sends. */
export async function start<Program extends keyof Programs>(
  file: Program,
  args: readonly string[] = [],
): Promise<Started<Programs[Program]>> {
  const child = fork(new URL(file, import.meta.url), args);
  atExit(() => child.kill('SIGKILL'));
  const [message] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]: unknown[]) => {
      throw new Error(`${file} ${args.join(' ')} ended with ${String(code)}`);
    }),
  ])) as [Programs[Program]];
  return { child, ...message };
}

/** A question to such a process, and its answer. */
export async function ask(child: ChildProcess, message: Serializable): Promise<unknown> {
  child.send(message);
  const [answer] = (await once(child, 'message')) as unknown[];
  return answer;
}

/** As a crash would. */
export async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/**
 * Starts the servers that this machine has, each with its usual durability: Redis syncs its append-only file every
 * second, Postgres every commit.
 * @returns the place of each engine, `undefined` without its server; and the versions, for the top of what is printed
 */
export async function storagePlaces(): Promise<{ readonly places: Places; readonly versions: string }> {
  const servers = { redis: new RedisServer('everysec'), postgres: new PostgresServer() };
  const places: Record<EngineName, string | undefined> = {
    memory: '',
    lmdb: temporaryFolder(),
    redis: undefined,
    postgres: undefined,
  };
  const versions = ['@nestjs/core', 'express-session', 'lmdb', 'redis', 'pg'].map((name) => {
    const folder = new URL(`../../node_modules/${name}`, import.meta.url);
    return `${name} ${manifestOf(fileURLToPath(folder)).version}`;
  });
  for (const engine of ['redis', 'postgres'] as const) {
    const server = servers[engine];
    try {
      await server.start();
      places[engine] = server.url;
      versions.push(server.version);
    } catch (error) {
      if (!(error instanceof Skipped)) throw error;
      versions.push(`${error.message}: ${engine} is left out`);
    }
  }
  return { places, versions: versions.join(', ') };
}
