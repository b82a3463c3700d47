import {
  Body,
  Controller,
  Get,
  Inject,
  type LoggerService,
  type NestApplicationOptions,
  Module,
  Post,
  Req,
  Res,
  Sse,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { ExpressAdapter, NestExpressApplication } from '@nestjs/platform-express';
import type { Request, RequestHandler, Response } from 'express';
import session, { type Store } from 'express-session';
import {
  DebateSpaceModule,
  type DebateSpaceModuleExtras,
  type DebateSpaceModuleOptions,
} from 'nestjs-debate-space';
import passport from 'passport';
import { NEVER, concat, of, type Observable } from 'rxjs';
import type { Fetch } from './browser.js';
import { onNestsServer, type ExpressWiring, type Mountable, type WiredHost } from './express-wirings.js';

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
  readonly stack?: SessionStack;
  readonly unset?: 'destroy' | 'keep';
  /** How long a session lives without being used, in milliseconds. Default: as long as the browser. */
  readonly maxAge?: number | undefined;
  /** Where further stores are mounted, by path. */
  readonly stores?: Readonly<Record<string, Store>>;
  readonly logger?: LoggerService;
  readonly controllers?: readonly Type[];
  /** Default: Nest listens. */
  readonly wiring?: ExpressWiring;
  /** How the host keeps its users. Default: `{ uid }`. */
  readonly users?: UserShape;
}

/** How a host keeps a user in its session, or serializes one for passport. */
export interface UserShape {
  readonly user: (name: string) => unknown;
  readonly name: (user: unknown) => string | undefined;
}

const byUid: UserShape = {
  user: (uid) => ({ uid }),
  name: (user) => (user as { uid: string } | undefined)?.uid,
};
const SHAPE = 'shape of users';
/** passport keeps the uid alone. */
const bare: UserShape = { user: (uid) => uid, name: (user) => user as string };

export const sessionStacks = ['express-session', 'passport'] as const;
export type SessionStack = (typeof sessionStacks)[number];

const SCENARIO = Symbol('scenario');
interface Scenario {
  readonly act: Act;
  readonly store: Store;
  readonly login: ExpressLogin;
}

class ActingGuard implements CanActivate {
  constructor(@Inject(SCENARIO) private readonly scenario: Scenario) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    await this.scenario.act(http.getRequest(), http.getResponse(), this.scenario.store);
    return false;
  }
}

@Controller(['', 'youth'])
class SessionHostController {
  constructor(@Inject(SCENARIO) private readonly scenario: Scenario) {}

  @Post('login')
  async login(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
    @Body('uid') uid: string,
  ): Promise<string> {
    await this.scenario.login.logIn(request, response, uid);
    return `hello ${uid}`;
  }

  @Get('whoami')
  async whoami(@Req() request: Request, @Res({ passthrough: true }) response: Response): Promise<string> {
    return (await this.scenario.login.uidIn(request, response)) ?? 'nobody';
  }

  @Post('act')
  async act(@Req() request: Request, @Res() response: Response): Promise<void> {
    await this.scenario.act(request, response, this.scenario.store);
    if (!response.writableEnded) response.end('done');
  }

  @Post('act-guarded')
  @UseGuards(ActingGuard)
  actGuarded(): string {
    return 'never';
  }

  @Sse('act-events')
  async actEvents(
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<Observable<{ data: string }>> {
    await this.scenario.act(request, response, this.scenario.store);
    return concat(of({ data: 'done' }), NEVER);
  }
}

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
    const { wiring = onNestsServer, users = stack === 'passport' ? bare : byUid } = options;
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
    const imports = [debateSpace].flat().map((options) => DebateSpaceModule.forRoot(options));

    @Module({
      imports,
      controllers: [SessionHostController, ...(options.controllers ?? [])],
      providers: [{ provide: SCENARIO, useValue: { act, store, login } satisfies Scenario }],
    })
    class SessionHostModule {}

    const create = (adapter?: ExpressAdapter): Promise<NestExpressApplication> => {
      const settings: NestApplicationOptions = { logger, abortOnError: false };
      return adapter
        ? NestFactory.create<NestExpressApplication>(SessionHostModule, adapter, settings)
        : NestFactory.create<NestExpressApplication>(SessionHostModule, settings);
    };
    const mountOutside = (app: Mountable): void => {
      app.use('/outside', (request: Request, response: Response, next: (error?: unknown) => void) => {
        Promise.resolve(act(request, response, store)).then(() => response.end('done'), next);
      });
    };
    const mount = (app: Mountable): void => {
      login.mount?.(app as NestExpressApplication);
    };
    return new SessionHost(await wiring({ create, mount, mountOutside }));
  }

  async stop(): Promise<void> {
    await this.#host.stop();
  }
}

function passportHandlers({ user, name }: UserShape): RequestHandler[] {
  const authenticator = new passport.Passport();
  authenticator.serializeUser((known, done) => {
    done(null, user((known as { uid: string }).uid));
  });
  authenticator.deserializeUser((stored, done) => {
    done(null, { uid: name(stored) } as Express.User);
  });
  return [authenticator.initialize() as RequestHandler, authenticator.session() as RequestHandler];
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
