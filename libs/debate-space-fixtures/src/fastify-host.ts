import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import awsLambdaFastify from '@fastify/aws-lambda';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { ActingController, providerOf, type ActingScenario } from './acting-controller.js';
import type { Fetch } from './browser.js';
import { http2Fetch } from './http2-fetch.js';
import { lambdaFetch, type LambdaHandler } from './lambda-fetch.js';

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
  /** Default: a host without the plugin. */
  readonly debateSpace: DebateSpaceModuleOptions | undefined;
  readonly serving?: FastifyServing;
}

/** How the requests of a host come in. */
export interface FastifyServing {
  /** Options of the adapter. */
  readonly adapter?: object;
  readonly serve: (app: NestFastifyApplication) => Promise<ServedHost>;
}

interface ServedHost {
  readonly url: string;
  readonly fetch?: Fetch;
  /** What is closed before the app. */
  readonly close?: () => Promise<void>;
}

const onServer: FastifyServing = {
  serve: async (app) => {
    await app.listen(0, '127.0.0.1');
    return { url: await app.getUrl() };
  },
};

/** One connection of HTTP/2. */
export const onHttp2: FastifyServing = {
  adapter: { http2: true },
  serve: async (app) => {
    const { url } = await onServer.serve(app);
    return { url, ...http2Fetch(url) };
  },
};

/** Without a server: each request is an event of AWS Lambda. */
export const onLambda: FastifyServing = {
  serve: async (app) => {
    await app.init();
    const handler = awsLambdaFastify(app.getHttpAdapter().getInstance() as never) as unknown as LambdaHandler;
    return { url: 'http://lambda', fetch: lambdaFetch(handler) };
  },
};

/** A host on Fastify as a team would have it: main.ts registers the session plugin, and has no line of ours. */
export class FastifyHost {
  private constructor(
    readonly app: NestFastifyApplication,
    private readonly served: ServedHost,
  ) {}

  get url(): string {
    return this.served.url;
  }

  get fetch(): Fetch | undefined {
    return this.served.fetch;
  }

  static async start(options: FastifyHostOptions): Promise<FastifyHost> {
    @Module({
      imports: options.debateSpace ? [DebateSpaceModule.forRoot(options.debateSpace)] : [],
      controllers: [ActingController],
      providers: [providerOf(scenarioOf(options))],
    })
    class FastifyHostModule {}

    const { adapter: more, serve } = options.serving ?? onServer;
    const adapter = new FastifyAdapter({ forceCloseConnections: true, ...more });
    const app = await NestFactory.create<NestFastifyApplication>(FastifyHostModule, adapter, {
      logger: false,
      abortOnError: false,
    });
    const fastify = app.getHttpAdapter().getInstance();
    fastify.addHook('onRequest', async (request, reply) => {
      if (request.url !== '/before-sessions') return;
      await options.act({ request, reply });
      await reply.send('done');
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
    fastify.addHook('preHandler', async (request, reply) => {
      if (request.url === '/missing') await options.act({ request, reply });
    });
    return new FastifyHost(app, await serve(app));
  }

  async stop(): Promise<void> {
    await this.served.close?.();
    await this.app.close();
  }
}

function scenarioOf({ act, login }: FastifyHostOptions): ActingScenario<FastifyRequest, FastifyReply> {
  return {
    act: (request, reply) => act({ request, reply }),
    logIn: (request, reply, uid) => login.logIn({ request, reply }, uid),
    uidIn: (request, reply) => login.uidIn({ request, reply }),
    finish: (reply) => reply.sent || reply.send('done'),
  };
}
