import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from 'debate-space-fixtures/free-port.js';
import { messageOf } from '../caught.js';
import { temporaryFolder } from './places.js';
import { missing, ServerProcess } from './server-process.js';

/** Debian keeps its servers, one folder per version, out of the `PATH`. */
const DEBIAN = '/usr/lib/postgresql';
/** For a postmaster that was killed: its children still have to notice. */
const STARTED_WITHIN_MS = 20_000;
const TRY_AGAIN_MS = 100;

/** A Postgres of its own, which syncs every commit; anyone who connects is let in. */
export class PostgresServer extends ServerProcess {
  readonly #folder = temporaryFolder();
  #port: number | undefined;

  get url(): string {
    return `postgres://postgres@127.0.0.1:${String(this.#port)}/postgres`;
  }

  get version(): string {
    const printed = execFileSync(join(programFolder(), 'postgres'), ['--version'], { encoding: 'utf8' });
    return `Postgres ${/[\d.]+/.exec(printed)?.[0] ?? ''}`;
  }

  async start(): Promise<void> {
    const programs = programFolder();
    const options = { ...unprivilegedUser(), cwd: this.#folder };
    const cluster = join(this.#folder, 'cluster');
    if (this.#port === undefined) {
      const { uid, gid } = options;
      if (uid !== undefined && gid !== undefined) chownSync(this.#folder, uid, gid);
      const settings = '-U postgres -A trust -E UTF8 --locale C'.split(' ');
      execFileSync(join(programs, 'initdb'), ['-D', cluster, ...settings], { ...options, stdio: 'ignore' });
      this.#port = await freePort();
    }
    const settings = {
      port: this.#port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.#folder,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${String(value)}`]);
    const deadline = Date.now() + STARTED_WITHIN_MS;
    for (;;) {
      try {
        const output = { output: 'stderr', ready: 'ready to accept connections' } as const;
        await this.launch(join(programs, 'postgres'), ['-D', cluster, ...flags], { ...options, ...output });
        return;
      } catch (error) {
        if (Date.now() > deadline || !messageOf(error).includes('still in use')) throw error;
        await sleep(TRY_AGAIN_MS);
      }
    }
  }
}

function programFolder(): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map((name) => join(DEBIAN, name, 'bin')) : [];
  const folders = [...versions, ...(process.env.PATH ?? '').split(delimiter)];
  const found = folders.find((folder) =>
    ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
  );
  if (found === undefined) throw missing('postgres');
  return found;
}

/** Postgres refuses to run as root; there, its package has made it a user. */
function unprivilegedUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}
