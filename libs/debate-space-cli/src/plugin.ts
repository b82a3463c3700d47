import { stat } from 'node:fs/promises';
import type { INestApplicationContext, LoggerService } from '@nestjs/common';
import type { RowDataPacket } from 'mysql2/promise';
import type {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceOutbox,
  DebateSpaceService,
  OptionProblem,
  StorageEngine,
} from 'nestjs-debate-space';
import type { CliContext } from './cli-context.js';
import { Failure } from './failure.js';
import type { Output } from './output.js';
import { textInVariables, variables, type StorageSetting } from './settings.js';

/** What a command does its work with. */
export interface Plugin {
  readonly app: Pick<INestApplicationContext, 'get'>;
  readonly service: DebateSpaceService;
  readonly erasures: DebateSpaceErasures;
  readonly outbox: DebateSpaceOutbox;
  readonly events: DebateSpaceEvents;
}

interface PluginNeeds {
  /** Whether this process sends what waits in the storage; otherwise it only reads and writes there. */
  readonly worker?: boolean;
  /** Whether the storage must be one that outlives the command. */
  readonly shared?: boolean;
}

/** What the command is configured with is missing or wrong. */
export class InvalidConfiguration extends Failure {
  /** In words of the command line. */
  readonly problems: readonly OptionProblem[];

  constructor(problems: readonly OptionProblem[]) {
    const told = problems.map(({ option, problem, hint }) => [option, problem, hint].map(textInVariables));
    const list = told
      .map(
        ([option, problem, hint]) => `  - ${option} ${problem}; hint: ${hint}
`,
      )
      .join('');
    super(
      'configuration',
      `Invalid configuration:
${list}\`debate-space doctor\` checks more.`,
    );
    this.problems = told.map(([option = '', problem = '', hint = '']) => ({ option, problem, hint }));
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
/** Of which every storage has some. */
const TABLE = 'debate_space_jobs';

/** Boots the plugin without a server, works with it, and closes it whatever happens. Help and version load neither it nor NestJS. */
export async function withPlugin<T>(
  { output, settings }: CliContext,
  { worker = false, shared = false }: PluginNeeds,
  work: (plugin: Plugin) => Promise<T>,
): Promise<T> {
  if (settings.problems.length > 0) throw new InvalidConfiguration(settings.problems);
  const isMemory = settings.storage.engine === 'memory';
  if (shared && isMemory)
    throw new Failure(
      'configuration',
      `This needs the storage of your app: set ${variables.storage} to sqlite:<file>, or to the URL of its Postgres, MySQL or MariaDB. A storage in memory is seen by its own process only.`,
    );
  const { NestFactory } = await import('@nestjs/core');
  const plugin = await import('nestjs-debate-space');
  const { engine: storage, close } = await connectStorage(settings.storage);
  try {
    const module = plugin.DebateSpaceModule.forRoot({
      ...settings.options,
      storage,
      worker: worker || isMemory, // what waits in memory has nobody else to send it
      logout: { storageTimeoutMs: STORE_WITHIN_MS },
    });
    const logger = loggerTo(output);
    const app = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
    try {
      return await work({
        app,
        service: app.get(plugin.DebateSpaceService),
        erasures: app.get(plugin.DebateSpaceErasures),
        outbox: app.get(plugin.DebateSpaceOutbox),
        events: app.get(plugin.DebateSpaceEvents),
      });
    } finally {
      await app.close();
    }
  } catch (error) {
    throw error instanceof plugin.DebateSpaceOptionsError ? new InvalidConfiguration(error.problems) : error;
  } finally {
    await close?.();
  }
}

/** What the plugin warns of, beside the command's answer. What is on is not read. */
function loggerTo(output: Output): LoggerService {
  const note = (level: string, message: unknown): void => {
    output.note(`${level}: ${textInVariables(String(message))}`);
  };
  return {
    log: () => undefined,
    warn: (message) => {
      note('warning', message);
    },
    error: (message, ...more) => {
      if (!more.includes('ExceptionHandler')) note('error', message); // Nest logs what it throws as well
    },
  };
}

/**
 * Connects to the storage of the app. Creates nothing: from a storage that no app uses, nobody would deliver.
 * @throws {Failure} when the storage cannot be reached, or is not there
 */
async function connectStorage({ engine, url, schema, prefix }: StorageSetting): Promise<Connection> {
  if (engine === 'memory') return { engine: (await import('nestjs-debate-space')).memoryStorage() };
  if (engine === 'sqlite') {
    const { size } = await stat(url).catch(() => ({ size: 0 }));
    const hint =
      "give the path of your app's SQLite storage, and run this command as the app's user; start your app first if it never ran";
    if (size === 0) throw unusable(`: there is no storage in ${url}`, hint);
    return { engine: (await import('nestjs-debate-space/sqlite')).sqliteStorage({ path: url }) };
  }
  return engine === 'postgres' ? connectPostgres(url, schema) : connectMysql(url, prefix);
}

async function connectPostgres(connectionString: string, schema = 'public'): Promise<Connection> {
  const { default: pg } = await installed('pg', import('pg'));
  const { postgresStorage } = await import('nestjs-debate-space/postgres');
  const limits = { max: 4, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, query_timeout: CONNECT_TIMEOUT_MS };
  const query = 'SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = $2';
  return connected('Postgres', `the schema ${schema} of this Postgres`, variables.storageSchema, () => {
    const pool = new pg.Pool({ connectionString, ...limits });
    pool.on('error', () => undefined); // of an idle connection; the next call takes another one
    return {
      engine: postgresStorage({ pool, schema, migrate: false }),
      tables: async () => (await pool.query<object>(query, [schema, TABLE])).rows,
      close: () => pool.end(),
    };
  });
}

async function connectMysql(uri: string, prefix = ''): Promise<Connection> {
  const { createPool } = await installed('mysql2', import('mysql2/promise'));
  const { mysqlStorage } = await import('nestjs-debate-space/mysql');
  const limits = { connectionLimit: 4, connectTimeout: CONNECT_TIMEOUT_MS };
  const query = 'SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?';
  const place = `the database that the URL names${prefix === '' ? '' : `, with the prefix ${prefix}`}`;
  return connected('MySQL', place, variables.storagePrefix, () => {
    const pool = createPool({ uri, ...limits });
    return {
      engine: mysqlStorage({ pool, prefix, migrate: false }),
      tables: async () => (await pool.query<RowDataPacket[]>(query, [prefix + TABLE]))[0],
      close: () => pool.end(),
    };
  });
}

/** @throws {Failure} when the server cannot be reached, or lacks the tables. It has no word of the URL: there is a password in it */
async function connected(
  server: string,
  place: string,
  variable: string,
  connect: () => Connection & { readonly tables: () => Promise<readonly object[]> },
): Promise<Connection> {
  let connection: ReturnType<typeof connect> | undefined;
  let tables: readonly object[] | undefined;
  try {
    connection = connect();
    tables = await connection.tables();
    if (tables.length > 0) return connection;
  } catch (error) {
    const { code } = Object(error) as { code?: unknown }; // ECONNREFUSED, 28P01, ER_ACCESS_DENIED_ERROR
    throw new Failure(
      'configuration',
      `${server} cannot be reached (${typeof code === 'string' ? code : 'no answer'})`,
      `compare address, user, password and database in ${variables.storage}`,
    );
  } finally {
    if (!tables?.length) await connection?.close?.();
  }
  throw unusable(
    `: the tables debate_space_… are not in ${place}`,
    `start your app first, or create them with the SQL of debate-space storage migration; if your app has them elsewhere, compare ${variables.storage} and ${variable}`,
  );
}

async function installed<T>(name: string, loading: Promise<T>): Promise<T> {
  return loading.catch(() => {
    throw unusable(` needs the package ${name}, which is missing or does not load`, `npm install ${name}`);
  });
}

function unusable(problem: string, hint: string): Failure {
  return new Failure('configuration', `${variables.storage}${problem}`, hint);
}
