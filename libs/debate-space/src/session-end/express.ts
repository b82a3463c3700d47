import type { IncomingMessage, ServerResponse } from 'node:http';
import { gateAnswersOf, installGate } from './answer-gate.js';
import { isUpgrade, RequestScope, scopeOf } from './request-scope.js';
import { isObject } from './session-user.js';
import type { WatchedApp } from './watched-app.js';

/** The part of an Express app that is used here. */
export interface ExpressApp {
  handle: (request: IncomingMessage, response: ServerResponse, next?: unknown) => unknown;
  /** The prototypes of the requests and responses of this app. */
  readonly request: object;
  readonly response: object;
}

interface ArrivedRequest {
  readonly sessionStore?: unknown;
}

const LISTENERS = Symbol('listeners for session stores');

/**
 * Gives each request of an Express app its scope before any middleware runs, whichever server the request came through.
 * (A property that is added after Express has prepared the request costs half a microsecond.)
 * @returns how to stop
 */
export function watchExpress(app: ExpressApp, watched: WatchedApp): () => void {
  const original = app.handle;
  const { containment } = watched;
  const handle: ExpressApp['handle'] = function (this: unknown, request, response, next) {
    try {
      arrived(request, response, watched);
    } catch (error) {
      containment.report('express request', error);
    }
    const returned = original.call(this, request, response, next);
    // The setter below is gone once a store is known. By now the middleware of a second store has usually run.
    try {
      const { sessionStore } = request as ArrivedRequest; // may be an accessor of the host
      if (isObject(sessionStore)) watched.found(sessionStore);
    } catch (error) {
      containment.report('request.sessionStore', error);
    }
    return returned;
  };
  app.handle = handle;
  const nothing = (): void => undefined;
  const removeGate = containment.run('HTTP adapter', () => gateAnswersOf(app.response), nothing);
  const stopLooking = containment.run('HTTP adapter', () => lookForStore(app.request, watched), nothing);
  return () => {
    stopLooking();
    removeGate();
    if (app.handle === handle) app.handle = original;
  };
}

function arrived(request: IncomingMessage, response: ServerResponse, watched: WatchedApp): void {
  if (Object.hasOwn(response, 'end')) installGate(response); // its wrapper is in front of the prototype's gate
  watched.arrived(request, response);
  if (isUpgrade(request)) return;
  const scope = scopeOf(request) ?? new RequestScope(request, request, response);
  if (request.headers.cookie !== undefined && watched.hasStores) scope.listen(watched);
  // The session middleware of a parent app has run before.
  const { sessionStore } = request as ArrivedRequest;
  if (isObject(sessionStore)) watched.loadedByParent(sessionStore, scope);
}

/** The first store is seen when express-session sets `request.sessionStore`, before it reads the session. */
function lookForStore(
  prototype: object & { [LISTENERS]?: Set<WatchedApp> },
  watched: WatchedApp,
): () => void {
  if (!watched.isLooking) return () => undefined;
  const listeners = (prototype[LISTENERS] ??= new Set());
  listeners.add(watched);
  const stop = (each: WatchedApp): void => {
    if (!listeners.delete(each) || listeners.size > 0) return;
    Reflect.deleteProperty(prototype, 'sessionStore');
    Reflect.deleteProperty(prototype, LISTENERS);
  };
  Object.defineProperty(prototype, 'sessionStore', {
    configurable: true,
    set(this: object, value: unknown) {
      const own = { value, writable: true, configurable: true, enumerable: true };
      Object.defineProperty(this, 'sessionStore', own);
      if (!isObject(value)) return;
      for (const each of [...listeners])
        each.containment.run('request.sessionStore', () => {
          each.found(value);
          if (!each.isLooking) stop(each);
        });
    },
  });
  return () => {
    stop(watched);
  };
}
