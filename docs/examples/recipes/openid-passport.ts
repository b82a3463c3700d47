import type { NestExpressApplication } from '@nestjs/platform-express';
import type { NextFunction, Request, Response } from 'express';
import * as client from 'openid-client';
import { Strategy } from 'openid-client/passport';
import passport from 'passport';

interface Login {
  readonly uid: string;
  readonly idToken: string;
}

const { APP_URL = '', ISSUER_URL = '', CLIENT_ID = '', CLIENT_SECRET = '' } = process.env;

export async function useOpenIdConnect(app: NestExpressApplication): Promise<void> {
  const config = await client.discovery(new URL(ISSUER_URL), CLIENT_ID, CLIENT_SECRET);
  const options = { config, scope: 'openid', callbackURL: `${APP_URL}/auth/callback` };
  const strategy = new Strategy(options, (tokens, done) => {
    const login: Login = { uid: tokens.claims()?.sub ?? '', idToken: tokens.id_token ?? '' };
    done(null, login as never); // your app declares its own Express.User
  });
  passport.use('oidc', strategy);
  passport.serializeUser((user, done) => {
    done(null, user);
  });
  passport.deserializeUser((user: Express.User, done) => {
    done(null, user);
  });

  app.use('/auth/login', passport.authenticate('oidc'));
  app.use('/auth/callback', passport.authenticate('oidc', { successRedirect: '/' }));
  app.use('/auth/logout', (request: Request, response: Response, next: NextFunction) => {
    const { idToken = '' } = (request.user ?? {}) as Partial<Login>;
    request.logout((error) => {
      if (error) {
        next(error);
        return;
      }
      const parameters = { id_token_hint: idToken, post_logout_redirect_uri: APP_URL };
      response.redirect(303, client.buildEndSessionUrl(config, parameters).href);
    });
  });
}
