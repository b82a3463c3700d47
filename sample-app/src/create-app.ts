import type { NestApplicationOptions } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import session from 'express-session';
import passport from 'passport';
import { AppModule } from './app.module.js';
import { pageContext } from './pages/page-context.js';
import { securityHeaders } from './pages/security-headers.js';
import { useTemplates } from './pages/templates.js';
import { sessionSecret } from './session/session-secret.js';

/**
 * What the bootstrap of a Nest app with passport sessions looks like anyway. There is no line for the debate space in
 * it: nestjs-debate-space finds the session store by itself.
 */
export async function createApp(options: NestApplicationOptions = {}): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, options);
  const config = app.get(ConfigService);
  app.disable('x-powered-by');
  const simulatorUrl = config.get<string>('SIMULATOR_URL');
  app.use(securityHeaders(simulatorUrl));
  useTemplates(app, { simulatorUrl });
  app.use(
    session({
      secret: sessionSecret(config.get('SESSION_SECRET')),
      // Forgets everybody when the app stops. A real app has a store that lasts.
      store: new session.MemoryStore(),
      resave: false,
      saveUninitialized: false,
      cookie: { httpOnly: true, sameSite: 'lax', secure: 'auto' },
    }),
  );
  app.use(passport.initialize());
  app.use(passport.session());
  app.use(pageContext);
  return app;
}
