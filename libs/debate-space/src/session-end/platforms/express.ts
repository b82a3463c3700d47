import type { IncomingMessage, ServerResponse } from 'node:http';
import { isObject } from '../is-object.js';
import { installGate } from '../verdict/answer-gate.js';
import { observe } from '../verdict/session-request.js';
import type { PlatformListener } from './platform-listener.js';

const LISTENERS = Symbol('listeners for session stores');
/** Without a setter: what is set by it becomes a property of the receiver itself, for less than `defineProperty` costs. */
const PLAIN: object = Object.create(null) as object;

/** As much of an Express app as is needed here. */
interface ExpressApp {
  handle: (request: IncomingMessage, response: ServerResponse, next?: unknown) => unknown;
  /** The prototype of this one app's requests. */
  readonly request: { [LISTENERS]?: Set<PlatformListener> };
}

/**
 * Reports each request of an Express app before any middleware of it runs, whichever server the request came through –
 * hosts may have several, or none of Nest's, or a parent app.
 * @returns how to stop
 */
export function onExpressRequest(app: ExpressApp, listener: PlatformListener): () => void {
  const original = app.handle;
  const handle: ExpressApp['handle'] = function (this: unknown, request, response, next) {
    listener.containment.run('express request', () => {
      const seen = observe(request, response);
      // A browser that is logged in has a cookie. To listen now costs less than when Express has prepared the response,
      // and a gate behind the session middleware's own `end` sees what that saves last.
      const mayLogIn = listener.mayLogIn(request.method);
      if (request.headers.cookie !== undefined || mayLogIn) {
        if (listener.hasStores) seen.listen(listener.onClosed);
        installGate(response);
      }
      if (mayLogIn) listener.opened(seen);
      listener.requested(request, response, request);
      // The session middleware of a parent app has run before, so that no setter of this app saw the store.
      const { sessionStore } = request as { sessionStore?: unknown };
      if (isObject(sessionStore)) listener.loadedByParent(sessionStore, seen);
    });
    return original.call(this, request, response, next);
  };
  app.handle = handle;
  return () => {
    if (app.handle === handle) app.handle = original;
  };
}

/**
 * Reports the session stores of an Express app at the moment express-session brings them along: it sets
 * `request.sessionStore` before it reads the session. A setter on the prototype of the app's requests sees it – wherever
 * the middleware is mounted, without a middleware of ours, from the first request on.
 * @returns how to stop
 */
export function onExpressSessionStore(app: ExpressApp, listener: PlatformListener): () => void {
  const { request: prototype } = app;
  const listeners = (prototype[LISTENERS] ??= defineSetter(prototype));
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    Reflect.deleteProperty(prototype, 'sessionStore');
    Reflect.deleteProperty(prototype, LISTENERS);
  };
}

function defineSetter(prototype: object): Set<PlatformListener> {
  const listeners = new Set<PlatformListener>();
  Object.defineProperty(prototype, 'sessionStore', {
    configurable: true,
    set(this: object, value: unknown) {
      // From here on a property of this request, as without us: an Express app that is called gives it another prototype.
      Reflect.set(PLAIN, 'sessionStore', value, this);
      if (!isObject(value)) return;
      for (const listener of listeners)
        listener.containment.run('request.sessionStore', () => listener.found(value));
    },
  });
  return listeners;
}
