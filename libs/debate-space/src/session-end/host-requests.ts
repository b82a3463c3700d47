import type { IncomingMessage, ServerResponse } from 'node:http';

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/** As much of an Express app as is needed here. */
export interface ExpressHandler {
  handle: (request: IncomingMessage, response: ServerResponse, ...rest: unknown[]) => unknown;
}

/** As much of Fastify as is needed here. */
export interface FastifyHooks {
  addHook(name: 'onRequest', hook: (request: { raw: IncomingMessage }, reply: { raw: ServerResponse }, done: () => void) => void): unknown; // prettier-ignore
}

/**
 * Tells of each request of an Express app before any middleware does, whichever server it came through – hosts may have
 * several, or none of Nest's.
 * @returns how to stop
 */
export function onExpressRequest(app: ExpressHandler, listener: RequestListener): () => void {
  const { handle } = app;
  const watched: ExpressHandler['handle'] = function (this: unknown, request, response, ...rest) {
    listener(request, response);
    return handle.call(this, request, response, ...rest);
  };
  app.handle = watched;
  return () => {
    if (app.handle === watched) app.handle = handle;
  };
}

/** The same for Fastify, for every route that is registered later. The hook stays for an app's life. */
export function onFastifyRequest(fastify: FastifyHooks, listener: RequestListener): () => void {
  let listening = true;
  fastify.addHook('onRequest', (request, reply, done) => {
    if (listening) listener(request.raw, reply.raw);
    done();
  });
  return () => {
    listening = false;
  };
}
