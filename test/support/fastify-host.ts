import {
  Body,
  Controller,
  Get,
  Inject,
  Module,
  Post,
  Req,
  Res,
  Sse,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { NEVER, concat, of, type Observable } from 'rxjs';

export interface FastifyContext {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** A session library of Fastify, as a host uses it. */
export interface FastifyLogin {
  /** What main.ts registers. */
  readonly register: (app: NestFastifyApplication) => unknown;
  readonly logIn: (context: FastifyContext, uid: string) => unknown;
  readonly uidIn: (context: FastifyContext) => string | undefined | Promise<string | undefined>;
}

export interface FastifyHostOptions {
  readonly login: FastifyLogin;
  readonly act: (context: FastifyContext) => unknown;
  /** Made when there is an app, for options that need it. */
  readonly debateSpace: DebateSpaceModuleOptions;
}

const SCENARIO = Symbol('scenario');

class ActingGuard implements CanActivate {
  constructor(@Inject(SCENARIO) private readonly scenario: FastifyHostOptions) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    await this.scenario.act({ request: http.getRequest(), reply: http.getResponse() });
    return false;
  }
}

@Controller()
class FastifyHostController {
  constructor(@Inject(SCENARIO) private readonly scenario: FastifyHostOptions) {}

  @Post('login')
  async login(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Body('uid') uid: string,
  ): Promise<string> {
    await this.scenario.login.logIn({ request, reply }, uid);
    return `hello ${uid}`;
  }

  @Get('whoami')
  async whoami(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    return (await this.scenario.login.uidIn({ request, reply })) ?? 'nobody';
  }

  @Post('act')
  async act(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.scenario.act({ request, reply });
    if (!reply.sent) await reply.send('done');
  }

  @Post('act-guarded')
  @UseGuards(ActingGuard)
  actGuarded(): string {
    return 'never';
  }

  @Sse('act-events')
  async actEvents(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Observable<{ data: string }>> {
    await this.scenario.act({ request, reply });
    return concat(of({ data: 'done' }), NEVER);
  }
}

/** A host on Fastify as a team would have it: main.ts registers the session plugin, and has no line of ours. */
export class FastifyHost {
  private constructor(
    readonly app: NestFastifyApplication,
    readonly url: string,
  ) {}

  static async start(options: FastifyHostOptions): Promise<FastifyHost> {
    @Module({
      imports: [DebateSpaceModule.forRoot(options.debateSpace)],
      controllers: [FastifyHostController],
      providers: [{ provide: SCENARIO, useValue: options }],
    })
    class FastifyHostModule {}

    const adapter = new FastifyAdapter({ forceCloseConnections: true });
    const app = await NestFactory.create<NestFastifyApplication>(FastifyHostModule, adapter, {
      logger: false,
      abortOnError: false,
    });
    await options.login.register(app);
    const outside = async (fastify: FastifyInstance): Promise<void> => {
      fastify.post('/outside', async (request, reply) => {
        await options.act({ request, reply });
        return 'done';
      });
      await Promise.resolve();
    };
    await app.register(outside as never);
    const fastify = app.getHttpAdapter().getInstance();
    fastify.addHook('preHandler', async (request, reply) => {
      if (request.url === '/missing') await options.act({ request, reply });
    });
    await app.listen(0, '127.0.0.1');
    return new FastifyHost(app, await app.getUrl());
  }

  async stop(): Promise<void> {
    await this.app.close();
  }
}
