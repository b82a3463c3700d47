import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from './free-port.js';
import { programOf } from './program.js';
import { waitForLine } from './wait-for-line.js';

/** The MariaDB server of this machine, if it has one. */
export const mariadbServer = programOf('mariadbd', 'MariaDB', ['/usr/sbin']);

export interface RunningMariadb {
  /** Of the database `app`, for mysql2. */
  readonly uri: string;
  readonly port: number;
  /** Of the process that runs now. */
  readonly pid: number | undefined;
  /** Kills it, as a crash would; its files stay. */
  crash(): Promise<void>;
  /** After a crash: at the same place, with the same files. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A MariaDB of its own on a port that the system chose, with an empty database `app`; its user `root` has no password.
 * @param more flags of mariadbd
 */
export async function startMariadb(more: readonly string[] = []): Promise<RunningMariadb> {
  const program = mariadbServer.path ?? 'mariadbd';
  const directory = await mkdtemp(join(tmpdir(), 'mariadb-'));
  const data = join(directory, 'data');
  const asRoot = process.getuid?.() === 0 ? ['--user=root'] : [];
  const installer = join(dirname(program).replace(/sbin$/, 'bin'), 'mariadb-install-db');
  const setUp = ['--no-defaults', `--datadir=${data}`, '--auth-root-authentication-method=normal', ...asRoot];
  // Installations at the same time would meet in the shared folder for temporary files.
  const env = { ...process.env, TMPDIR: directory };
  await promisify(execFile)(installer, [...setUp, '--skip-test-db'], { env });
  const port = await freePort();
  const flags = [
    '--no-defaults',
    `--datadir=${data}`,
    `--socket=${join(directory, 'socket')}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    '--skip-name-resolve',
    '--innodb-log-file-size=16M',
    `--init-file=${join(directory, 'init.sql')}`,
    '--innodb-flush-log-at-trx-commit=2', // survives a kill of the server
    ...asRoot,
    ...more,
  ];
  const start = async () => {
    const started = spawn(program, flags, { cwd: directory, env, stdio: ['ignore', 'ignore', 'pipe'] });
    await waitForLine('MariaDB', started.stderr, 'ready for connections');
    return started;
  };
  await writeFile(join(directory, 'init.sql'), 'CREATE DATABASE IF NOT EXISTS app;\n');
  let server = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    server.kill(signal);
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit');
  };
  return {
    uri: `mysql://root@127.0.0.1:${port}/app`,
    port,
    get pid() {
      return server.pid;
    },
    crash: () => end('SIGKILL'),
    restart: async () => {
      server = await start();
    },
    stop: async () => {
      await end('SIGKILL');
      await rm(directory, { recursive: true });
    },
  };
}
