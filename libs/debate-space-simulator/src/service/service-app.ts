import * as expressModule from 'express';
import type { ErrorRequestHandler, Express } from 'express';
import type { DemoModeSwitch } from '../demo/demo-mode.js';
import { demoRoutes } from '../demo/demo-routes.js';
import type { EventStream } from '../demo/debate-state.js';
import { LogoutTokenVerifier } from '../logout-token.js';
import { ClientAuthorization, SlidingWindow } from '../operations/client-authorization.js';
import { anonymizeUser, deleteUser, listUsers, logOutUser } from '../operations/users.js';
import { obtainToken, type AccessTokens } from '../operations/obtain-token.js';
import type { Operation } from '../received-requests.js';
import type { ServiceClock, SimulatedUsers } from '../state/users.js';
import type { SimulatorSettings } from '../simulator-options.js';
import type { DebateSessions } from '../state/debate-sessions.js';
import { contractRoute, type Perform, type RouteSurroundings } from './contract-route.js';
import { Refusal } from './http.js';
import { knownHosts } from './known-hosts.js';

// A CommonJS module that is a function: Node gives it as the default. The test runner of a host that compiles without
// `esModuleInterop` gives the function itself.
const express =
  (expressModule as Partial<typeof expressModule>).default ??
  (expressModule as unknown as typeof expressModule.default);

/** The parts of a simulator its routes work on. */
export interface ServiceParts extends RouteSurroundings {
  readonly clock: ServiceClock;
  readonly demo: DemoModeSwitch;
  readonly users: SimulatedUsers;
  readonly debate: DebateSessions;
  readonly tokens: AccessTokens;
  readonly events: EventStream;
  /** `{base_url}`, known once the server listens. */
  readonly baseUrl: () => string;
}

/** The routes of sections 4.1 to 4.5, and the page with the demo routes. */
export function serviceApp(settings: SimulatorSettings, parts: ServiceParts): Express {
  const { demo, users, debate, tokens, clock, events, baseUrl } = parts;
  const window = new SlidingWindow(settings.rateLimit);
  const authorization = new ClientAuthorization(settings.apiKey, tokens, window);
  const verifier = new LogoutTokenVerifier(settings, clock);
  const route = (operation: Operation, perform: Perform) => contractRoute(operation, perform, parts);

  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.enable('case sensitive routing').enable('strict routing');
  // Of `node:querystring`: a repeated parameter becomes an array, a dot or bracket in a name stays.
  app.set('query parser', 'simple');

  app.use((_request, response, next) => {
    response.setHeader('date', new Date(clock.nowMs()).toUTCString());
    next();
  });
  app.use(knownHosts([settings.host, ...settings.hostNames]));
  app.use(demoRoutes(settings.applicationName, demo, users, debate, events));
  app.post('/oauth/token', route('token', obtainToken(settings, tokens)));
  app.post('/api/v1/users/:uid/anonymize', route('anonymize', anonymizeUser(authorization, users)));
  app.delete('/api/v1/users/:uid', route('delete', deleteUser(authorization, users)));
  app.get(
    '/api/v1/users',
    route(
      'list',
      listUsers(settings, authorization, users, () => `${baseUrl()}/users`),
    ),
  );
  app.post(
    '/auth/logout/:application_name',
    route('logout', logOutUser(settings.applicationName, verifier, debate)),
  );
  app.use(route('unknown', refuseWith(404, 'No such route')));

  // The router itself fails on a path parameter that cannot be percent-decoded.
  const undecodable: ErrorRequestHandler = (error: unknown, request, response, next) => {
    if (!(error instanceof URIError)) {
      next(error);
      return;
    }
    return route('unknown', refuseWith(400, 'The path is not percent-encoded properly'))(
      request,
      response,
      next,
    );
  };
  app.use(undecodable);
  return app;
}

function refuseWith(status: number, error: string): Perform {
  return () => {
    throw Refusal.of(status, error);
  };
}
