import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from './places.mjs';
import { freePort, missing, ServerProcess } from './server-process.mjs';

/** Debian keeps its servers, one folder per version, out of the `PATH`. */
const DEBIAN = '/usr/lib/postgresql';
/** For a postmaster that was killed: its children still have to notice. */
const STARTED_WITHIN_MS = 20_000;
const TRY_AGAIN_MS = 100;

/** A Postgres of its own, which syncs every commit; anyone who connects is let in. */
export class PostgresServer extends ServerProcess {
  #folder = temporaryFolder();
  #port;

  get url() {
    return `postgres://postgres@127.0.0.1:${this.#port}/postgres`;
  }

  get version() {
    const printed = execFileSync(join(programFolder(), 'postgres'), ['--version'], { encoding: 'utf8' });
    return `Postgres ${/[\d.]+/.exec(printed)[0]}`;
  }

  async start() {
    const programs = programFolder();
    const options = { ...unprivilegedUser(), cwd: this.#folder };
    const cluster = join(this.#folder, 'cluster');
    if (this.#port === undefined) {
      if (options.uid !== undefined) chownSync(this.#folder, options.uid, options.gid);
      const settings = '-U postgres -A trust -E UTF8 --locale C'.split(' ');
      execFileSync(join(programs, 'initdb'), ['-D', cluster, ...settings], { ...options, stdio: 'ignore' });
      this.#port = await freePort();
    }
    const settings = {
      port: this.#port,
      listen_addresses: '127.0.0.1',
      unix_socket_directories: this.#folder,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    for (const deadline = Date.now() + STARTED_WITHIN_MS; ; await sleep(TRY_AGAIN_MS)) {
      try {
        const output = { output: 'stderr', ready: 'ready to accept connections' };
        await this.launch(join(programs, 'postgres'), ['-D', cluster, ...flags], { ...options, ...output });
        return;
      } catch (error) {
        if (Date.now() > deadline || !error.message.includes('still in use')) throw error;
      }
    }
  }
}

function programFolder() {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map((name) => join(DEBIAN, name, 'bin')) : [];
  const folders = [...versions, ...(process.env.PATH ?? '').split(delimiter)];
  const found = folders.find((folder) =>
    ['initdb', 'postgres'].every((name) => existsSync(join(folder, name))),
  );
  if (found === undefined) throw missing('postgres');
  return found;
}

/** Postgres refuses to run as root; there, its package has made it a user. */
function unprivilegedUser() {
  if (process.getuid?.() !== 0) return {};
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}
