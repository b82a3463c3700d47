import type { IncomingMessage, ServerResponse } from 'node:http';
import { gateAnswersOf, installGate } from './answer-gate.js';
import { observe } from './session-request.js';
import { isObject } from './session-user.js';
import type { WatchedApp } from './watched-app.js';

const LISTENERS = Symbol('listeners for session stores');
/** Without a setter: what is set by it becomes a property of the receiver itself, for less than `defineProperty` costs. */
const PLAIN: object = Object.create(null) as object;

interface Arrived {
  readonly sessionStore?: unknown;
}

/** As much of an Express app as is needed here. */
export interface ExpressApp {
  handle: (request: IncomingMessage, response: ServerResponse, next?: unknown) => unknown;
  /** The prototypes of this one app's requests and responses. */
  readonly request: { [LISTENERS]?: Set<WatchedApp> };
  readonly response: object;
}

/**
 * Reports each request of an Express app before any middleware of it runs, whichever server the request came through –
 * hosts may have several, or none of Nest's, or a parent app.
 * @returns how to stop
 */
export function watchExpress(app: ExpressApp, listener: WatchedApp): () => void {
  const original = app.handle;
  const handle: ExpressApp['handle'] = function (this: unknown, request, response, next) {
    try {
      arrived(request, response, listener);
    } catch (error) {
      listener.containment.report('express request', error);
    }
    const returned = original.call(this, request, response, next);
    // The setter below is gone when one store is known; the session middleware of another has run by now, most often.
    try {
      const { sessionStore } = request as Arrived; // may be an accessor of the host
      if (isObject(sessionStore) && !listener.stores.has(sessionStore)) listener.found(sessionStore);
    } catch (error) {
      listener.containment.report('request.sessionStore', error);
    }
    return returned;
  };
  app.handle = handle;
  const { containment } = listener;
  const nothing = (): void => undefined;
  // One by one: requests are watched though a prototype cannot be changed.
  const removeGate = containment.run('HTTP adapter', () => gateAnswersOf(app.response), nothing);
  const stopLooking = containment.run('HTTP adapter', () => lookForStore(app, listener), nothing);
  return () => {
    stopLooking();
    removeGate();
    if (app.handle === handle) app.handle = original;
  };
}

function arrived(request: IncomingMessage, response: ServerResponse, listener: WatchedApp): void {
  // What wraps the response by now is not in front of the app's prototype.
  if (Object.hasOwn(response, 'end')) installGate(response);
  listener.arrived(request, response);
  const mayLogIn = listener.openRequests.counts(request.method);
  // A browser that is logged in has a cookie. To listen now costs less than when Express has prepared the response.
  if (request.headers.cookie === undefined && !mayLogIn) return;
  const seen = observe(request, response);
  if (listener.stores.size > 0) seen.onClose(listener);
  if (mayLogIn) listener.openRequests.add(seen);
  // The session middleware of a parent app has run before, so that no setter of this app saw the store.
  const { sessionStore } = request as Arrived;
  if (isObject(sessionStore)) listener.loadedByParent(sessionStore, seen);
}

/**
 * Reports the first session store of an Express app at the moment express-session brings it along: it sets
 * `request.sessionStore` before it reads the session. A setter on the prototype of the app's requests sees it – wherever
 * the middleware is mounted, without a middleware of ours, from the first request on. Then it goes: each request would pay.
 * @returns how to stop
 */
function lookForStore({ request: prototype }: ExpressApp, listener: WatchedApp): () => void {
  if (!listener.isLooking) return () => undefined;
  const listeners = (prototype[LISTENERS] ??= defineSetter(prototype));
  listeners.add(listener);
  return () => {
    stopLooking(prototype, listener);
  };
}

function stopLooking(prototype: ExpressApp['request'], listener: WatchedApp): void {
  const listeners = prototype[LISTENERS];
  if (!listeners?.delete(listener) || listeners.size > 0) return;
  Reflect.deleteProperty(prototype, 'sessionStore');
  Reflect.deleteProperty(prototype, LISTENERS);
}

function defineSetter(prototype: ExpressApp['request']): Set<WatchedApp> {
  const listeners = new Set<WatchedApp>();
  Object.defineProperty(prototype, 'sessionStore', {
    configurable: true,
    set(this: object, value: unknown) {
      // From here on a property of this request, as without us: an Express app that is called gives it another prototype.
      Reflect.set(PLAIN, 'sessionStore', value, this);
      if (!isObject(value)) return;
      for (const listener of [...listeners])
        listener.containment.run('request.sessionStore', () => {
          listener.found(value);
          if (!listener.isLooking) stopLooking(prototype, listener);
        });
    },
  });
  return listeners;
}
