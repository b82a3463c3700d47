import { execFileSync } from 'node:child_process';
import { freePort } from 'debate-space-fixtures/free-port.js';
import { temporaryFolder } from './places.js';
import { ServerProcess } from './server-process.js';

type Appendfsync = 'always' | 'everysec';

/** A Redis of its own with an append-only file. */
export class RedisServer extends ServerProcess {
  readonly #folder = temporaryFolder();
  #port: number | undefined;
  readonly #appendfsync: Appendfsync;

  /**
   * @param appendfsync `always`: what Redis has answered is in the file. `everysec`: while Redis syncs the file, once a
   * second, it answers first and writes afterwards
   */
  constructor(appendfsync: Appendfsync) {
    super();
    this.#appendfsync = appendfsync;
  }

  get url(): string {
    return `redis://127.0.0.1:${String(this.#port)}`;
  }

  get version(): string {
    const printed = execFileSync('redis-server', ['--version'], { encoding: 'utf8' });
    return `Redis ${/[\d.]+/.exec(printed)?.[0] ?? ''}`;
  }

  async start(): Promise<void> {
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
