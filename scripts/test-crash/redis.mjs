import { execFileSync } from 'node:child_process';
import { temporaryFolder } from './places.mjs';
import { freePort, ServerProcess } from './server-process.mjs';

/** A Redis of its own with an append-only file. */
export class RedisServer extends ServerProcess {
  #folder = temporaryFolder();
  #port;
  #appendfsync;

  /**
   * @param appendfsync `always`: what Redis has answered is in the file. `everysec`: while Redis syncs the file, once a
   * second, it answers first and writes afterwards
   */
  constructor(appendfsync) {
    super();
    this.#appendfsync = appendfsync;
  }

  get url() {
    return `redis://127.0.0.1:${this.#port}`;
  }

  get version() {
    return `Redis ${/[\d.]+/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))[0]}`;
  }

  async start() {
    this.#port ??= await freePort();
    const options = {
      port: this.#port,
      bind: '127.0.0.1',
      dir: this.#folder,
      save: '',
      appendonly: 'yes',
      appendfsync: this.#appendfsync,
      'maxmemory-policy': 'noeviction',
    };
    const settings = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    await this.launch('redis-server', settings, { output: 'stdout', ready: 'Ready to accept' });
  }
}
