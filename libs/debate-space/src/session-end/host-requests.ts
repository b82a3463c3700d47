import type { IncomingMessage, ServerResponse } from 'node:http';

/** Never throws. */
export type RequestListener = (request: IncomingMessage, response: ServerResponse) => void;

/** As much of an Express app as is needed here. */
export interface ExpressHandler {
  handle: (request: IncomingMessage, response: ServerResponse, ...rest: unknown[]) => unknown;
}

/**
 * Calls the listener for each request of an Express app before any middleware of it runs, whichever server the request
 * came through – hosts may have several, or none of Nest's, or a parent app.
 * @returns how to stop
 */
export function onExpressRequest(app: ExpressHandler, listener: RequestListener): () => void {
  const original = app.handle;
  const handle: ExpressHandler['handle'] = function (this: unknown, request, response, ...rest) {
    listener(request, response);
    return original.call(this, request, response, ...rest);
  };
  app.handle = handle;
  return () => {
    if (app.handle === handle) app.handle = original;
  };
}
