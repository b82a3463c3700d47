// One instance of a host as a process: NestJS on Express, sessions in files that outlive the process, and the plugin. Its parent
// talks to it over HTTP, hears its events over IPC, and kills it. Imports nothing but packages: see `compileApp`.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Body, Controller, HttpCode, Inject, Module, Post, Req } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NextFunction, Request, Response } from 'express';
import session from 'express-session';
import {
  DebateSpaceErasures,
  DebateSpaceEvents,
  DebateSpaceModule,
  memoryStorage,
  type DebateSpaceModuleOptions,
  type ErasureStatus,
  type StorageEngine,
} from 'nestjs-debate-space';
import sessionFileStore from 'session-file-store';
import type { EngineName } from './engines.js';

declare module 'express-session' {
  interface SessionData {
    user?: { uid: string };
  }
}

/** The one argument of the process, as JSON. */
export interface AppSettings {
  readonly engine: EngineName;
  /** Where the storage is. */
  readonly place: string;
  /** The folder of the sessions. */
  readonly sessions: string;
  readonly options: Omit<DebateSpaceModuleOptions, 'storage'>;
}

/** The process listens at `detail`, has read a list to its end, or has heard an event of the plugin. */
export interface AppEvent {
  readonly type: 'listening' | 'list-read' | (typeof TOLD)[number];
  readonly detail: string;
}

/** Users to be erased. */
export interface ErasureList {
  readonly reference: string;
  readonly uids: readonly string[];
}

export interface ErasureAccount {
  readonly status: ErasureStatus;
  /** How many users have one receipt, which says that they were erased. */
  readonly proven: number;
}

const TOLD = ['storage-degraded', 'storage-recovered', 'fault'] as const;
const settings = JSON.parse(process.argv[2] ?? '') as AppSettings;
process.once('disconnect', () => process.exit());

function tell(event: AppEvent): void {
  if (process.connected) process.send?.(event);
}

const openStorage: Readonly<Record<EngineName, (place: string) => StorageEngine | Promise<StorageEngine>>> = {
  memory: () => memoryStorage(),
  sqlite: async (path) => (await import('nestjs-debate-space/sqlite')).sqliteStorage({ path }),
  postgres: async (connectionString) => {
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString }).on('error', () => undefined);
    return (await import('nestjs-debate-space/postgres')).postgresStorage({ pool });
  },
  mariadb: async (uri) => {
    const pool = (await import('mysql2/promise')).createPool(uri);
    return (await import('nestjs-debate-space/mysql')).mysqlStorage({ pool });
  },
};

@Controller()
class HostController {
  constructor(@Inject(DebateSpaceErasures) private readonly erasures: DebateSpaceErasures) {}

  @Post('login')
  @HttpCode(200)
  login(@Req() { session, headers }: Request): string {
    const uid = String(headers['x-user']);
    session.user = { uid };
    return uid;
  }

  /** A new session of the same user. */
  @Post('login-again')
  @HttpCode(200)
  async logInAgain(@Req() request: Request): Promise<string> {
    const { user = { uid: '' } } = request.session;
    await promisify(request.session.regenerate.bind(request.session))();
    request.session.user = user;
    return user.uid;
  }

  @Post('logout')
  @HttpCode(200)
  async logout(@Req() { session }: Request): Promise<string> {
    const { user = { uid: '' } } = session;
    await promisify(session.destroy.bind(session))();
    return user.uid;
  }

  /** Reads the list slowly enough for a kill to meet the reading. */
  @Post('erase')
  erase(@Body() { reference, uids }: ErasureList): Promise<ErasureStatus> {
    async function* slowly(): AsyncGenerator<string> {
      for (const [n, uid] of uids.entries()) {
        if (n % 10 === 9) await sleep(100);
        yield uid;
      }
      tell({ type: 'list-read', detail: reference });
    }
    return this.erasures.requestMany(slowly(), { mode: 'delete', reference });
  }

  @Post('account')
  async account(@Body() { reference, uids }: ErasureList): Promise<ErasureAccount> {
    let proven = 0;
    for (const uid of uids) {
      const outcomes: string[] = [];
      for await (const { outcome } of this.erasures.receiptsOf(uid)) outcomes.push(outcome);
      if (outcomes.join() === 'erased') proven += 1;
    }
    return { status: await this.erasures.status(reference), proven };
  }

  @Post('measure')
  measure(): { heapMb: number; handles: number } {
    globalThis.gc?.();
    const heapMb = Math.round(process.memoryUsage().heapUsed / 10_485.76) / 100;
    return { heapMb, handles: process.getActiveResourcesInfo().length };
  }
}

const plugin = DebateSpaceModule.forRoot({
  ...settings.options,
  ...(settings.place.includes('://') && { storageKey: 'a key that protects nothing' }),
  storage: await openStorage[settings.engine](settings.place),
});

@Module({ imports: [plugin], controllers: [HostController] })
class HostModule {}

const app = await NestFactory.create(HostModule, { logger: false, forceCloseConnections: true });
// By default Nest sends itself the signal again, and loses it when signal-exit of session-file-store stops listening at that moment.
app.enableShutdownHooks([], { useProcessExit: true });
app.get(DebateSpaceEvents).events$.subscribe((event) => {
  const type = TOLD.find((told) => told === event.type);
  if (type) tell({ type, detail: JSON.stringify(event) });
});
const dieAfterAnswer = (request: Request, response: Response, next: NextFunction): void => {
  if (request.headers['x-die']) response.once('finish', () => process.kill(process.pid, 'SIGKILL'));
  next();
};
const path = settings.sessions;
app.use(
  dieAfterAnswer,
  session({
    secret: 'only for crashes, and long enough for it',
    store: new (sessionFileStore(session))({ path, retries: 0, reapInterval: -1, logFn: () => undefined }),
    // The browser names its sessions, so that the harness can look which of them live.
    genid: ({ headers }) => String(headers['x-session']),
    resave: false,
    saveUninitialized: false,
  }),
);
await app.listen(0, '127.0.0.1');
tell({ type: 'listening', detail: await app.getUrl() });
