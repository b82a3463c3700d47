import type { IncomingMessage, ServerResponse } from 'node:http';
import { ArrivingRequests, isUpgrade, RequestScope, scopeOf } from './request-scope.js';
import type { WatchedApp } from './watched-app.js';

const WATCHING = Symbol('watched for sessions');

type Hook = (request: FastifyRequest, reply: { readonly raw: ServerResponse }, done: () => void) => void;
type LaterHook = (request: FastifyRequest, reply: object, payload: unknown, done: () => void) => void;

/** The part of Fastify that is used here; Fastify is an optional peer. */
export interface FastifyLike {
  [WATCHING]?: Watching;
  addHook(name: 'onRequest', hook: Hook): unknown;
  addHook(name: 'preParsing', hook: LaterHook): unknown;
}

interface FastifyRequest {
  readonly raw: IncomingMessage;
  /** Set by @fastify/session. */
  readonly sessionStore?: object | undefined;
}

interface Watching {
  readonly apps: WatchedApp[];
  readonly arriving: ArrivingRequests;
}

/**
 * Gives each request of a Fastify app its scope. A `preParsing` hook, which runs after every `onRequest` hook, takes the
 * session that the plugin has loaded. The hooks reach every route that is registered later, and stay as long as the app.
 * @returns how to stop
 */
export function watchFastify(fastify: FastifyLike, watched: WatchedApp): () => void {
  const { apps, arriving } = (fastify[WATCHING] ??= addHooks(fastify));
  watched.watchArriving(arriving);
  apps.push(watched);
  return () => {
    const at = apps.indexOf(watched);
    if (at >= 0) apps.splice(at, 1);
  };
}

function addHooks(fastify: FastifyLike): Watching {
  const watching = { apps: [] as WatchedApp[], arriving: new ArrivingRequests() };
  const { apps, arriving } = watching;
  fastify.addHook('onRequest', (request, reply, done) => {
    for (const watched of apps)
      try {
        arrived(request, reply.raw, watched, arriving);
      } catch (error) {
        watched.containment.report('fastify onRequest', error);
      }
    done();
  });
  fastify.addHook('preParsing', (request, _reply, _payload, done) => {
    const scope = scopeOf(request);
    if (scope && arriving.delete(scope))
      for (const watched of apps)
        try {
          const { sessionStore } = request;
          if (sessionStore) watched.loadedBefore(sessionStore, scope);
        } catch (error) {
          watched.containment.report('fastify preParsing', error);
        }
    done();
  });
  return watching;
}

function arrived(
  request: FastifyRequest,
  response: ServerResponse,
  watched: WatchedApp,
  arriving: ArrivingRequests,
): void {
  const { raw, sessionStore } = request; // may be an accessor of the host
  watched.arrived(raw, response, request);
  if (sessionStore && !watched.stores.has(sessionStore)) watched.found(sessionStore);
  if (isUpgrade(raw) || (!sessionStore && watched.stores.size === 0)) return;
  const scope = scopeOf(request) ?? new RequestScope(request, raw, response);
  if (raw.headers.cookie === undefined || watched.stores.size === 0) return;
  scope.listen(watched);
  if (!sessionStore) return;
  if (scope.sessionID === undefined) arriving.add(scope);
  else watched.loadedBefore(sessionStore, scope); // the session plugin was registered before our hook
}
