import { stat } from 'node:fs/promises';
import type { DebateSpaceOptionsError, OptionProblem, StorageEngine } from 'nestjs-debate-space';
import type { CliContext } from './cli-context.js';
import { codeOf, Failure } from './failure.js';
import { shown, type Output } from './output.js';
import { inVariables, textInVariables, variables, type Settings, type StorageSetting } from './settings.js';

/** What a command does its work with. */
export type Plugin = Awaited<ReturnType<typeof boot>>;

interface PluginNeeds {
  /** Whether this process sends what waits in the storage; otherwise it only reads and writes there. */
  readonly worker?: boolean;
  /** What it works on in the storage of an app, in which it is a guest: the app's options are not known here. */
  readonly guest?: NonNullable<StorageEngine['guest']>;
  /** Whether the storage must outlive the command. */
  readonly shared?: boolean;
}

/** What the command is configured with is missing or wrong. */
export class InvalidConfiguration extends Failure {
  constructor(readonly problems: readonly OptionProblem[]) {
    const list = problems.map(
      ({ option, problem, hint }) => `  - ${shown(`${option} ${problem}; hint: ${hint}`)}\n`,
    );
    super(
      'configuration',
      `Invalid configuration:\n${list.join('')}\`npx debate-space doctor\` checks more.`,
    );
  }
}

/** A storage, and what closes the connection that this command has opened for it. */
interface Connection {
  readonly engine: StorageEngine;
  readonly close?: () => Promise<void>;
}

/** Nobody's response waits here: better a slow disk than a logout in the memory of a process that ends. */
const STORE_WITHIN_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;
const NO_FILE =
  "give the path of your app's SQLite storage, and run this command as the app's user; start your app first if it never ran";

/** Boots the plugin without a server, works with it, and closes it whatever happens. Help and version load neither it nor NestJS. */
export async function withPlugin<T>(
  { output, settings }: CliContext,
  { worker = false, shared = false, guest = { kinds: [] } }: PluginNeeds,
  work: (plugin: Plugin) => Promise<T>,
): Promise<T> {
  if (settings.problems.length > 0) throw new InvalidConfiguration(settings.problems);
  const isMemory = settings.storage.engine === 'memory';
  if (shared && isMemory)
    throw new Failure(
      'configuration',
      `This needs the storage of your app: set ${variables.storage} to sqlite:<file>, or to the URL of its Postgres, MySQL or MariaDB. A storage in memory is seen by its own process only.`,
    );
  const { engine, close } = await connectStorage(settings.storage);
  try {
    const storage = isMemory ? engine : { ...engine, guest };
    const plugin = await boot(settings, storage, worker || isMemory, output); // what waits in memory has nobody else to send it
    return await work(plugin).finally(() => plugin.app.close());
  } catch (error) {
    if (codeOf(error) !== 'ERR_DEBATE_SPACE_OPTIONS') throw error;
    throw new InvalidConfiguration((error as DebateSpaceOptionsError).problems.map(inVariables));
  } finally {
    await close?.();
  }
}

async function boot({ options }: Settings, storage: StorageEngine, worker: boolean, output: Output) {
  const { NestFactory } = await import('@nestjs/core');
  const plugin = await import('nestjs-debate-space');
  /** The warnings of the plugin go to stderr. */
  const note =
    (level: string) =>
    (message: unknown, ...more: readonly unknown[]) => {
      // Nest logs what it throws as well.
      if (!more.includes('ExceptionHandler'))
        output.note(`${level}: ${shown(textInVariables(String(message)))}`);
    };
  const logger = { log: () => undefined, warn: note('warning'), error: note('error') };
  const logout = { storageTimeoutMs: STORE_WITHIN_MS };
  const module = plugin.DebateSpaceModule.forRoot({ ...options, storage, worker, logout });
  const app = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
  return {
    app,
    service: app.get(plugin.DebateSpaceService),
    erasures: app.get(plugin.DebateSpaceErasures),
    outbox: app.get(plugin.DebateSpaceOutbox),
    events: app.get(plugin.DebateSpaceEvents),
  };
}

/**
 * The storage of the app. Creates nothing: from a storage that no app uses, nobody would deliver. The plugin says what is
 * wrong with a server.
 * @throws {Failure} when its file or package is missing, or its client refuses the URL
 */
async function connectStorage({ engine, url, schema, prefix }: StorageSetting): Promise<Connection> {
  if (engine === 'memory') return { engine: (await import('nestjs-debate-space')).memoryStorage() };
  if (engine === 'sqlite') {
    const { size } = await stat(url).catch(() => ({ size: 0 }));
    if (size === 0) throw unusable(`: no storage is found in ${url}`, NO_FILE);
    return { engine: (await import('nestjs-debate-space/sqlite')).sqliteStorage({ path: url }) };
  }
  try {
    return await (engine === 'postgres' ? connectPostgres(url, schema) : connectMysql(url, prefix));
  } catch (error) {
    // Whatever the client says may have the URL in it, and with it a password.
    throw error instanceof Failure ? error : unusable(' is refused by its client', 'compare the whole URL');
  }
}

async function connectPostgres(connectionString: string, schema?: string): Promise<Connection> {
  const { default: pg } = await installed('pg', import('pg'));
  const { postgresStorage } = await import('nestjs-debate-space/postgres');
  const limits = { max: 4, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS };
  const pool = new pg.Pool({ connectionString, ...limits });
  pool.on('error', () => undefined); // of an idle connection; the next call takes another one
  return { engine: postgresStorage({ pool, schema, migrate: false }), close: () => pool.end() };
}

async function connectMysql(uri: string, prefix?: string): Promise<Connection> {
  const { createPool } = await installed('mysql2', import('mysql2/promise'));
  const { mysqlStorage } = await import('nestjs-debate-space/mysql');
  const pool = createPool({ uri, connectionLimit: 4, connectTimeout: CONNECT_TIMEOUT_MS });
  return { engine: mysqlStorage({ pool, prefix, migrate: false }), close: () => pool.end() };
}

async function installed<T>(name: string, loading: Promise<T>): Promise<T> {
  return loading.catch(() => {
    throw unusable(` needs the package ${name}, which is missing or does not load`, `npm install ${name}`);
  });
}

function unusable(problem: string, hint: string): Failure {
  return new Failure('configuration', `${variables.storage}${problem}`, hint);
}
