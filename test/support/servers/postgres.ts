import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Pool, type PoolConfig } from 'pg';
import { freePort } from './free-port.js';
import { programOf } from './program.js';
import { waitForLine } from './wait-for-line.js';

/** The Postgres server of this machine, if it has one. */
export const postgresServer = programOf('postgres', 'Postgres', placesOfDebian());

export interface RunningPostgres {
  readonly connectionString: string;
  readonly port: number;
  /** Of the process that runs now; its children serve the connections. */
  readonly pid: number | undefined;
  /** Ends all processes together, as a crash would; its files stay. */
  crash(): Promise<void>;
  /** After a crash: at the same place, with the same files. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A pool of connections that may end when the server does. */
export function postgresPool(config: PoolConfig): Pool {
  return new Pool(config).on('error', () => undefined);
}

/**
 * A Postgres of its own, empty, on a port that the system chose; it lets everybody in.
 * @param fsync whether it writes its commits through
 */
export async function startPostgres(fsync: 'on' | 'off' = 'off'): Promise<RunningPostgres> {
  const program = postgresServer.path ?? 'postgres';
  const user = unprivilegedUser();
  const directory = await mkdtemp(join(tmpdir(), 'postgres-'));
  if (user) await chown(directory, user.uid, user.gid);
  const cluster = join(directory, 'cluster');
  const initdb = join(dirname(program), 'initdb');
  const settings = '-U postgres -A trust -E UTF8 --locale C --no-sync --wal-segsize=1'.split(' ');
  await promisify(execFile)(initdb, ['-D', cluster, ...settings], { ...user, cwd: directory });

  const port = await freePort();
  const options = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    fsync,
    recovery_init_sync_method: 'syncfs', // a restart after a crash takes a fifth of the time
  };
  const flags = Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const start = async () => {
    const started = spawn(program, ['-D', cluster, ...flags], {
      ...user,
      cwd: directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    await waitForLine('Postgres', started.stderr, 'ready to accept');
    return started;
  };
  let server = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  };
  return {
    connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    get pid() {
      return server.pid;
    },
    crash: () => end('SIGQUIT'),
    restart: async () => {
      server = await start();
    },
    stop: async () => {
      await end('SIGINT'); // does not wait for its clients
      await rm(directory, { recursive: true });
    },
  };
}

/** Debian keeps its servers, one folder per version, out of the `PATH`. */
function placesOfDebian(): string[] {
  const versions = '/usr/lib/postgresql';
  try {
    return readdirSync(versions).map((version) => join(versions, version, 'bin'));
  } catch {
    return [];
  }
}

/** Postgres refuses to run as root; there, Debian's package has made it a user. */
function unprivilegedUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const [, uid, gid] = /^postgres:[^:]*:(\d+):(\d+):/m.exec(readFileSync('/etc/passwd', 'utf8')) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}
