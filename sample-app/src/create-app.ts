import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NestApplicationOptions } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Eta } from 'eta';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import session from 'express-session';
import helmet from 'helmet';
import passport from 'passport';
import { AppModule } from './app.module.js';
import { csrf } from './auth/csrf.guard.js';
import { Sessions } from './auth/sessions.js';
import type { Environment } from './environment.js';

const VIEWS = fileURLToPath(new URL('../views', import.meta.url));
const PUBLIC = fileURLToPath(new URL('../public', import.meta.url));
/** A pasted list of about 300,000 users. */
const MAX_FORM_SIZE = '5mb';

/** Any Nest app with passport sessions starts like this: no line here is for the debate space. */
export async function createApp(options: NestApplicationOptions = {}): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, {
    abortOnError: false,
    forceCloseConnections: true, // else an open page with live progress holds up the shutdown
    ...options,
  });
  const config = app.get<ConfigService<Environment, true>>(ConfigService);
  const simulatorUrl = config.get<string | undefined>('SIMULATOR_URL');
  app.use(knownHosts(config.get<string>('HOST_NAMES')));
  app.set('trust proxy', 'loopback'); // HTTPS ends at a reverse proxy on this machine
  app.use(
    helmet({
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: ["'none'"],
          scriptSrc: ["'self'"],
          styleSrc: ["'self'"],
          imgSrc: ['data:'],
          connectSrc: ["'self'", ...(simulatorUrl === undefined ? [] : [simulatorUrl])],
          formAction: ["'self'"],
          baseUri: ["'none'"],
          frameAncestors: ["'none'"],
        },
      },
    }),
  );
  app.useStaticAssets(PUBLIC);
  app.useBodyParser('urlencoded', { extended: false, limit: MAX_FORM_SIZE });
  app.use(
    session({
      secret: config.get<string>('SESSION_SECRET'),
      store: app.get(Sessions),
      resave: false,
      saveUninitialized: false,
      cookie: { httpOnly: true, sameSite: 'lax', secure: 'auto' }, // secure behind HTTPS
    }),
  );
  app.use(passport.initialize());
  app.use(passport.session());
  useViews(app, simulatorUrl);
  return app;
}

/**
 * Refuses other host names than those of this machine and the given ones. A site on the Internet can have its name resolve to
 * 127.0.0.1 (DNS rebinding), and its scripts would then be of the same origin.
 */
function knownHosts(names: string): RequestHandler {
  const known = new Set(['localhost', '127.0.0.1', '[::1]', ...(names.toLowerCase().match(/\S+/g) ?? [])]);
  return ({ headers: { host = '' } }, response, next) => {
    if (known.has(host.toLowerCase().replace(/:\d+$/, ''))) next();
    else
      response.status(403).type('text').send('Unknown host name. Set HOST_NAMES to the names of this app.');
  };
}

/** Pages from `views/`, escaped by default. Each gets the user and the CSRF token of its session. */
function useViews(app: NestExpressApplication, simulatorUrl: string | undefined): void {
  const eta = new Eta({ views: VIEWS, autoEscape: true, cache: true });
  app.engine('eta', (path: string, data: object, done: (error: unknown, html?: string) => void) => {
    try {
      done(null, eta.render(relative(VIEWS, path), data));
    } catch (error) {
      done(error);
    }
  });
  app.setBaseViewsDir(VIEWS);
  app.setViewEngine('eta');
  app.setLocal('simulatorUrl', simulatorUrl);
  app.use((request: Request, response: Response, next: NextFunction) => {
    response.set('Cache-Control', 'no-store'); // after a logout, the back button shows no page of the user
    Object.assign(response.locals, { user: request.user, csrfToken: () => csrf.generateToken(request) });
    next();
  });
}
