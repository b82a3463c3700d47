import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import awsLambdaFastify from '@fastify/aws-lambda';
import { DebateSpaceModule, type DebateSpaceModuleOptions } from 'nestjs-debate-space';
import { ActingController, providerOf, type ActingScenario } from './acting-controller.js';
import type { Fetch } from '../browser/browser.js';
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
  /** Whether the session plugin is there before Nest, and so before ours. */
  readonly isEarly?: boolean;
  /** Whether requests with `?in=HOOK` have their act in that hook of the host, which `&answers`. */
  readonly hooks?: boolean;
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
    const given = fastify({ forceCloseConnections: true });
    if (options.isEarly) await options.login.register(given as never);
    const adapter = new FastifyAdapter(
      options.isEarly ? (given as never) : { forceCloseConnections: true, ...more },
    );
    const app = await NestFactory.create<NestFastifyApplication>(FastifyHostModule, adapter, {
      logger: false,
      abortOnError: false,
    });
    const instance = app.getHttpAdapter().getInstance();
    instance.addHook('onRequest', async (request, reply) => {
      if (request.url.split('?', 1)[0] !== '/before-sessions') return;
      await options.act({ request, reply });
      await reply.send('done');
    });
    if (!options.isEarly) await options.login.register(app);
    if (options.hooks) addHooks(instance, options.act);
    const outside = async (inner: FastifyInstance): Promise<void> => {
      inner.post('/outside', async (request, reply) => {
        await options.act({ request, reply });
        return 'done';
      });
      await Promise.resolve();
    };
    await app.register(outside as never);
    instance.addHook('preHandler', async (request, reply) => {
      if (request.url === '/missing') await options.act({ request, reply });
    });
    return new FastifyHost(app, await serve(app));
  }

  async stop(): Promise<void> {
    await this.served.close?.();
    await this.app.close();
  }
}

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler', 'onSend', 'onResponse'] as const;

function addHooks(instance: FastifyInstance, act: FastifyHostOptions['act']): void {
  for (const hook of HOOKS)
    instance.addHook(hook as 'onRequest', async (request, reply) => {
      const { in: name, answers } = request.query as Readonly<Record<string, string | undefined>>;
      if (name !== hook) return;
      await act({ request, reply });
      if (answers !== undefined) await reply.send('answered by the hook');
    });
}

function scenarioOf({ act, login }: FastifyHostOptions): ActingScenario<FastifyRequest, FastifyReply> {
  return {
    act: (request, reply) => (request.url.includes('?in=') ? undefined : act({ request, reply })),
    logIn: (request, reply, uid) => login.logIn({ request, reply }, uid),
    uidIn: (request, reply) => login.uidIn({ request, reply }),
    finish: (reply) => reply.sent || reply.send('done'),
  };
}
