import type { NestApplicationOptions } from '@nestjs/common';
import { ConfigService } from '@nestjs/config';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import session from 'express-session';
import passport from 'passport';
import { AppModule } from './app.module.js';
import { Accounts } from './login/accounts.js';
import { pageContext } from './pages/page-context.js';
import { securityHeaders } from './pages/security-headers.js';
import { useTemplates } from './pages/templates.js';
import { QuietLogger } from './quiet-logger.js';
import { allowedHosts } from './session/allowed-hosts.js';
import { sessionSecret } from './session/session-secret.js';
import { Sessions } from './session/sessions.js';

/**
 * What the bootstrap of a Nest app with passport sessions looks like anyway. There is no line for the debate space in
 * it: nestjs-debate-space finds the session store automatically.
 */
export async function createApp(options: NestApplicationOptions = {}): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, {
    logger: new QuietLogger(),
    abortOnError: false,
    ...options,
  });
  const config = app.get(ConfigService);
  app.disable('x-powered-by');
  const simulatorUrl = config.get<string>('SIMULATOR_URL');
  const trustedProxy = config.get<string>('TRUSTED_PROXY') ?? '';
  if (trustedProxy !== '') app.set('trust proxy', trustedProxy);
  app.use(securityHeaders(simulatorUrl));
  app.use(allowedHosts(config));
  useTemplates(app, { simulatorUrl, demoLogins: app.get(Accounts).demoLogins });
  app.use(
    session({
      secret: sessionSecret(config.get('SESSION_SECRET')),
      store: app.get(Sessions),
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
