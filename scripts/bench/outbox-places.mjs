// What the benchmarks of the outbox need and must not leave behind: folders, processes, a Redis. All of it is gone when
// the benchmark is over, and when it is broken off.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const leftovers = [];
process.once('exit', () => {
  for (const remove of leftovers.reverse()) remove();
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));

export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'debate-space-bench-'));
  leftovers.push(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A process of its own, and the first message it sends. */
export async function start(file, args = []) {
  const child = fork(new URL(file, import.meta.url), args);
  leftovers.push(() => child.kill('SIGKILL'));
  const [message] = await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(([code]) => {
      throw new Error(`${file} ${args.join(' ')} ended with ${code}`);
    }),
  ]);
  return { child, ...message };
}

/** As a crash would. */
export async function kill(child) {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** A Redis of its own that writes its append-only file, synced every second. @returns its URL; `undefined` without Redis */
export async function startRedis() {
  const [folder, port] = [temporaryFolder(), await freePort()];
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    save: '',
    appendonly: 'yes',
    appendfsync: 'everysec',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  server.once('error', () => undefined); // not installed
  leftovers.push(() => server.kill('SIGKILL'));
  let version = '';
  for await (const line of createInterface(server.stdout)) {
    version ||= /version=([\d.]+)/.exec(line)?.[1] ?? '';
    if (!line.includes('Ready to accept')) continue;
    server.stdout.resume();
    return { url: `redis://127.0.0.1:${port}`, version };
  }
  return undefined;
}

/** The versions that are measured, for the top of what is printed. */
export function versions(redis) {
  const packages = ['@nestjs/core', 'express-session', 'lmdb', 'bullmq'].map((name) => {
    const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
    return `${name} ${JSON.parse(readFileSync(file, 'utf8')).version}`;
  });
  const server = redis ? `Redis ${redis.version}` : 'no redis-server on this machine: BullMQ is left out';
  return [...packages, server].join(', ');
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
