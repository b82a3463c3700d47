import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { configure as serverlessExpress } from '@codegenie/serverless-express';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import express, { type Express, type RequestHandler } from 'express';
import type { Fetch } from '../browser/browser.js';
import { lambdaFetch, type LambdaHandler } from './lambda-fetch.js';
import { neverCloseIdle } from '../service/never-close-idle.js';

/** What sessions are mounted on: an app of Nest, or one of Express. */
export interface Mountable {
  use(path: string, handler: RequestHandler): unknown;
  use(handler: RequestHandler): unknown;
}

export interface ExpressParts {
  /** Makes the app of Nest, with what it mounts itself. Default: on an Express app of its own. */
  readonly create: (adapter?: ExpressAdapter) => Promise<NestExpressApplication>;
  /** Mounts the session middleware. */
  readonly mount: (app: Mountable) => void;
  /** Mounts what stands behind the session middleware. */
  readonly mountOutside: (app: Mountable) => void;
}

export interface WiredHost {
  readonly app: NestExpressApplication;
  readonly url: string;
  readonly fetch?: Fetch;
  /** Closes the app, and its server if it is not Nest's. */
  stop(): Promise<void>;
}

/** How an app of Nest and its session middleware come together, and where requests come from. */
export type ExpressWiring = (parts: ExpressParts) => Promise<WiredHost>;

/** As main.ts of most hosts. */
export const onNestsServer: ExpressWiring = async ({ create, mount, mountOutside }) => {
  const app = await create();
  mount(app);
  mountOutside(app);
  await app.listen(0, '127.0.0.1');
  neverCloseIdle(app);
  return { app, url: await app.getUrl(), stop: () => app.close() };
};

/** Another Express app stands behind the sessions, and is called: it leaves its own prototype on the request. */
export const behindCalledApp: ExpressWiring = (parts) => {
  const called = express();
  const mount = (app: Mountable): void => {
    parts.mount(app);
    app.use((request, response, next) => {
      called(request, response, next);
    });
  };
  return onNestsServer({ ...parts, mount });
};

const instanceOf = (app: NestExpressApplication): Express => app.getHttpAdapter().getInstance();

/** A bigger Express app has the session middleware and the server; Nest is a part of it. */
function inParent(
  mountNest: (parent: Express, parts: ExpressParts) => Promise<NestExpressApplication>,
  at = '',
): ExpressWiring {
  return async (parts) => {
    const parent = express();
    parts.mount(parent);
    const app = await mountNest(parent, parts);
    const server = await listening(createServer(parent));
    const { port } = server.address() as AddressInfo;
    return {
      app,
      url: `http://127.0.0.1:${port}${at}`,
      stop: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
        await app.close();
      },
    };
  };
}

async function mounted(
  parent: Express,
  { create, mountOutside }: ExpressParts,
  at: string,
): Promise<NestExpressApplication> {
  const app = await create();
  mountOutside(app);
  await app.init();
  parent.use(at, instanceOf(app));
  return app;
}

/** With the session middleware in a parent: `parent.use(session()); parent.use(nestApp)`. */
export const wiringsInParents: Readonly<Record<string, ExpressWiring>> = {
  'Nest in a parent app with the sessions': inParent((parent, parts) => mounted(parent, parts, '/')),
  'Nest at a path of a parent app with the sessions': inParent(
    (parent, parts) => mounted(parent, parts, '/nest'),
    '/nest',
  ),
  'Nest on a sub-app of a parent app with the sessions': inParent(
    async (parent, { create, mountOutside }) => {
      const inner = express();
      parent.use(inner);
      const app = await create(new ExpressAdapter(inner));
      mountOutside(app);
      await app.init();
      return app;
    },
  ),
};

/** Without a server: each request is an event of AWS Lambda. */
export const onLambda: ExpressWiring = async ({ create, mount, mountOutside }) => {
  const app = await create();
  mount(app);
  mountOutside(app);
  await app.init();
  const handler = serverlessExpress({ app: instanceOf(app) as never }) as unknown as LambdaHandler;
  return { app, url: 'http://lambda', fetch: lambdaFetch(handler), stop: () => app.close() };
};

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
