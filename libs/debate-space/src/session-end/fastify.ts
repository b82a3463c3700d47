import type { IncomingMessage, ServerResponse } from 'node:http';
import { installGate } from './answer-gate.js';
import { ArrivingRequests, isUpgrade, RequestScope, scopeOf, storeIn } from './request-scope.js';
import type { WatchedApp } from './watched-app.js';

const WATCHING = Symbol('watched for sessions');

type Hook = (request: FastifyRequest, reply: { readonly raw: ServerResponse }, done: () => void) => void;
type LaterHook = (
  request: FastifyRequest,
  reply: { readonly raw: ServerResponse },
  payload: unknown,
  done: () => void,
) => void;

/** The part of Fastify that is used here; Fastify is an optional peer. */
export interface FastifyLike {
  [WATCHING]?: Watching;
  addHook(name: 'onRequest', hook: Hook): unknown;
  addHook(name: 'preParsing', hook: LaterHook): unknown;
}

interface FastifyRequest {
  readonly raw: IncomingMessage;
}

interface Watching {
  readonly apps: WatchedApp[];
  readonly arriving: ArrivingRequests;
  /** Whether sessions are on Node's requests: express-session by `app.use`, which wraps the response. */
  hasRawSessions: boolean;
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
  const watching = { apps: [] as WatchedApp[], arriving: new ArrivingRequests(), hasRawSessions: false };
  const { apps, arriving } = watching;
  fastify.addHook('onRequest', (request, reply, done) => {
    for (const watched of apps)
      try {
        if (watching.hasRawSessions) installGate(reply.raw); // behind the wrapper of express-session
        arrived(request, reply.raw, watched, arriving);
      } catch (error) {
        watched.containment.report('fastify onRequest', error);
      }
    done();
  });
  fastify.addHook('preParsing', (request, reply, _payload, done) => {
    const { raw } = request;
    let scope = scopeOf(request);
    for (const watched of apps)
      try {
        if (scope && scope.place === undefined && watched.hasStores && !watching.hasRawSessions) continue;
        const store = storeIn(request, raw);
        if (!store || isUpgrade(raw)) continue;
        watching.hasRawSessions ||= store !== storeIn(request, request);
        watched.found(store);
        scope ??= new RequestScope(request, raw, reply.raw);
        watched.loadedBefore(store, scope);
      } catch (error) {
        watched.containment.report('fastify preParsing', error);
      }
    if (scope) arriving.delete(scope);
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
  const { raw } = request;
  const sessionStore = storeIn(request, raw);
  watched.arrived(raw, response, request);
  if (sessionStore) watched.found(sessionStore);
  if (isUpgrade(raw) || (!sessionStore && !watched.hasStores)) return;
  const scope = scopeOf(request) ?? new RequestScope(request, raw, response);
  if (raw.headers.cookie === undefined || !watched.hasStores) return;
  scope.listen(watched);
  if (!sessionStore) return;
  if (scope.sessionID === undefined) arriving.add(scope);
  else watched.loadedBefore(sessionStore, scope); // the session plugin was registered before our hook
}
