// What the benchmarks of the storages need and must not leave behind: folders, processes, servers. All of it is gone when
// the benchmark is finished, and when it is broken off.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { atExit } from '../test-crash/leftovers.mjs';
import { temporaryFolder } from '../test-crash/places.mjs';
import { PostgresServer } from '../test-crash/postgres.mjs';
import { RedisServer } from '../test-crash/redis.mjs';
import { Skipped } from '../test-crash/skipped.mjs';

/** A process of its own, and the first message it sends. */
export async function start(file, args = []) {
  const child = fork(new URL(file, import.meta.url), args);
  atExit(() => child.kill('SIGKILL'));
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`${file} ${args.join(' ')} ended with ${code}`);
    }),
  ]);
  return { child, ...message };
}

/** A question to such a process, and its answer. */
export async function ask(child, message) {
  child.send(message);
  const [answer] = await once(child, 'message');
  return answer;
}

/** As a crash would. */
export async function kill(child) {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/**
 * Starts the servers that this machine has, each with its usual durability: Redis syncs its append-only file every
 * second, Postgres every commit.
 * @returns the place of each engine, `undefined` without its server; and the versions, for the top of what is printed
 */
export async function storagePlaces() {
  const servers = { redis: new RedisServer('everysec'), postgres: new PostgresServer() };
  const places = { memory: '', lmdb: temporaryFolder() };
  const versions = ['@nestjs/core', 'express-session', 'lmdb', 'redis', 'pg'].map((name) => {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
    return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`;
  });
  for (const [engine, server] of Object.entries(servers)) {
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
