type StoreListener = (store: object) => void;

const LISTENERS = Symbol('listeners for session stores');

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
  listener: StoreListener,
): () => void {
  const prototype = app.request as RequestPrototype;
  const listeners = (prototype[LISTENERS] ??= defineSetter(prototype));
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    Reflect.deleteProperty(prototype, 'sessionStore');
    Reflect.deleteProperty(prototype, LISTENERS);
  };
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
