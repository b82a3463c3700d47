import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { temporaryFolder } from './places.mjs';
import { atExit } from './leftovers.mjs';
import { Skipped } from './skipped.mjs';

/** A Redis of its own with an append-only file, that can be killed and started again where it was. */
export class RedisServer {
  #folder = temporaryFolder();
  #port;
  #process;
  #appendfsync;

  /**
   * @param appendfsync `always`: what Redis has answered is in the file. `everysec`: while Redis syncs the file, once a
   * second, it answers first and writes afterwards
   */
  constructor(appendfsync) {
    this.#appendfsync = appendfsync;
  }

  get url() {
    return `redis://127.0.0.1:${this.#port}`;
  }

  async start() {
    this.#port ??= await freePort();
    const options = { port: this.#port, bind: '127.0.0.1', dir: this.#folder, save: '', appendonly: 'yes', appendfsync: this.#appendfsync, 'maxmemory-policy': 'noeviction' }; // prettier-ignore
    const settings = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const server = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'inherit'] });
    const wipe = atExit(() => server.kill('SIGKILL'));
    server.once('exit', wipe);
    this.#process = server;
    await Promise.race([listening(server), once(server, 'exit').then(failed)]).catch(missing);
    server.stdout.resume();
  }

  async kill() {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exit = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exit;
  }
}

async function listening(server) {
  for await (const line of createInterface(server.stdout)) if (line.includes('Ready to accept')) return;
}

function missing(error) {
  if (error.code !== 'ENOENT') throw error;
  throw new Skipped('this machine has no redis-server', { canBeInstalled: true });
}

function failed([code]) {
  throw new Error(`redis-server did not start (exit code ${code})`);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
