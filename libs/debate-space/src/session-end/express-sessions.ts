import type { Containment } from '../containment.js';

const LISTENERS = Symbol('listeners for session stores');

export type StoreListener = (store: object) => void;

interface RequestPrototype {
  [LISTENERS]?: Set<StoreListener>;
}

/**
 * Learns the session stores of an Express app at the moment express-session brings them along: it sets
 * `request.sessionStore` before it reads the session. `app.request` is the prototype of this one app's requests, so a
 * setter there sees it – wherever the middleware is mounted, without a middleware of ours, from the first request on.
 * @returns how to stop
 */
export function onExpressSessionStore(
  app: { readonly request: object },
  containment: Containment,
  listener: StoreListener,
): () => void {
  const prototype = app.request as RequestPrototype;
  const listeners = (prototype[LISTENERS] ??= defineSetter(prototype));
  const contained: StoreListener = (store) => {
    containment.run('request.sessionStore', () => {
      listener(store);
    });
  };
  listeners.add(contained);
  return () => {
    listeners.delete(contained);
    if (listeners.size > 0) return;
    Reflect.deleteProperty(prototype, 'sessionStore');
    Reflect.deleteProperty(prototype, LISTENERS);
  };
}

/**
 * The session store of a request that comes with one: the session middleware of a parent app has run before, so that
 * no setter of this app saw it.
 */
export function parentStoreOf(request: object): object | undefined {
  const { sessionStore } = request as { sessionStore?: unknown };
  return typeof sessionStore === 'object' && sessionStore !== null ? sessionStore : undefined;
}

function defineSetter(prototype: object): Set<StoreListener> {
  const listeners = new Set<StoreListener>();
  Object.defineProperty(prototype, 'sessionStore', {
    configurable: true,
    set(this: object, store: unknown) {
      // From here on a plain property of this request, as without us.
      Object.defineProperty(this, 'sessionStore', {
        value: store,
        writable: true,
        enumerable: true,
        configurable: true,
      });
      if (typeof store !== 'object' || store === null) return;
      for (const listener of listeners) listener(store);
    },
  });
  return listeners;
}
