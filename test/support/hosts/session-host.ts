import { Module, type LoggerService, type NestApplicationOptions } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { ExpressAdapter, NestExpressApplication } from '@nestjs/platform-express';
import type { Request, Response } from 'express';
import session, { type Store } from 'express-session';
import {
  DebateSpaceModule,
  type DebateSpaceModuleExtras,
  type DebateSpaceModuleOptions,
} from 'nestjs-debate-space';
import { ActingController, providerOf } from './acting-controller.js';
import type { Fetch } from '../browser/browser.js';
import { onNestsServer, type ExpressWiring, type Mountable, type WiredHost } from './express-wirings.js';
import { bareUid, byUid, passportHandlers, type UserShape } from './user-shape.js';

declare module 'express-session' {
  interface SessionData {
    user?: { uid: string } | undefined;
  }
}

/** What a handler of the host does to its session. */
export type Act = (request: Request, response: Response, store: Store) => unknown;

type HostedApplication = DebateSpaceModuleOptions & DebateSpaceModuleExtras;

/** A login of another kind than by express-session. */
export interface ExpressLogin {
  /** What main.ts mounts. */
  readonly mount?: (app: NestExpressApplication) => void;
  readonly logIn: (request: Request, response: Response, uid: string) => unknown;
  readonly uidIn: (request: Request, response: Response) => string | undefined | Promise<string | undefined>;
}

export interface SessionHostOptions {
  /** One application, several with names, or none. */
  readonly debateSpace?: HostedApplication | HostedApplication[];
  /** Default: a memory store. */
  readonly store?: Store;
  readonly login?: ExpressLogin;
  readonly act?: Act;
  readonly stack?: 'express-session' | 'passport';
  readonly unset?: 'destroy' | 'keep';
  /** How long a session lives without being used, in milliseconds. Default: as long as the browser. */
  readonly maxAge?: number | undefined;
  /** Where further stores are mounted, by path. */
  readonly stores?: Readonly<Record<string, Store>>;
  readonly logger?: LoggerService;
  /** Default: Nest listens. */
  readonly wiring?: ExpressWiring;
  /** How the host keeps its users. Default: `{ uid }`. */
  readonly users?: UserShape;
}

const SHAPE = 'shape of users';

/** A host app as a team would have it: main.ts mounts the session middleware, and has no line of ours. */
export class SessionHost {
  readonly #host: WiredHost;

  private constructor(host: WiredHost) {
    this.#host = host;
  }

  get app(): NestExpressApplication {
    return this.#host.app;
  }

  get url(): string {
    return this.#host.url;
  }

  get fetch(): Fetch | undefined {
    return this.#host.fetch;
  }

  static async start(options: SessionHostOptions): Promise<SessionHost> {
    const { act = () => undefined, store = new session.MemoryStore(), stores = {}, unset = 'keep' } = options;
    const { stack = 'express-session', logger = false, debateSpace = [], maxAge } = options;
    const { wiring = onNestsServer, users = stack === 'passport' ? bareUid : byUid } = options;
    const mountSessions = (app: Mountable): void => {
      app.use((_: Request, response: Response, next: () => void) => {
        response.locals[SHAPE] = users;
        next();
      });
      for (const [path, own] of Object.entries({ ...stores, '/': store })) {
        const settings = { secret: 'only for tests', resave: false, saveUninitialized: false };
        app.use(
          path,
          session({
            ...settings,
            store: own,
            unset,
            rolling: maxAge !== undefined,
            cookie: { path, maxAge },
          }),
        );
      }
      if (stack === 'passport') for (const handler of passportHandlers(users)) app.use(handler);
    };
    const sessions = {
      mount: mountSessions,
      logIn: (request: Request, _: Response, uid: string) => logIn(request, uid),
      uidIn: (request: Request) => uidIn(request, users),
    };
    const { login = sessions } = options;
    const acting = (request: Request, response: Response): unknown => act(request, response, store);
    const finish = (response: Response): unknown => response.writableEnded || response.end('done');
    const imports = [debateSpace].flat().map((options) => DebateSpaceModule.forRoot(options));

    @Module({
      imports,
      controllers: [ActingController],
      providers: [providerOf({ act: acting, logIn: login.logIn, uidIn: login.uidIn, finish })],
    })
    class SessionHostModule {}

    const create = (adapter?: ExpressAdapter): Promise<NestExpressApplication> => {
      const settings: NestApplicationOptions = { logger, abortOnError: false };
      return adapter
        ? NestFactory.create<NestExpressApplication>(SessionHostModule, adapter, settings)
        : NestFactory.create<NestExpressApplication>(SessionHostModule, settings);
    };
    const mountActing = (app: Mountable, path: string): void => {
      app.use(path, (request: Request, response: Response, next: (error?: unknown) => void) => {
        Promise.resolve(acting(request, response)).then(() => response.end('done'), next);
      });
    };
    const mount = (app: Mountable): void => {
      mountActing(app, '/before-sessions');
      login.mount?.(app as NestExpressApplication);
    };
    const mountOutside = (app: Mountable): void => {
      mountActing(app, '/outside');
    };
    return new SessionHost(await wiring({ create, mount, mountOutside }));
  }

  async stop(): Promise<void> {
    await this.#host.stop();
  }
}

/** Logs in as the app's session stack does it. */
export async function logIn(request: Request, uid: string): Promise<void> {
  if (typeof request.logIn !== 'function') {
    const users = (request.res?.locals[SHAPE] as UserShape | undefined) ?? byUid;
    Object.assign(request.session, { user: users.user(uid) });
    return;
  }
  await new Promise<void>((resolve, reject) => {
    request.logIn({ uid } as Express.User, (error?: unknown) => {
      if (error) reject(new Error('logIn failed', { cause: error }));
      else resolve();
    });
  });
}

export function uidIn(request: Request, users: UserShape = byUid): string | undefined {
  return (request.user as { uid: string } | undefined)?.uid ?? users.name(request.session.user);
}
