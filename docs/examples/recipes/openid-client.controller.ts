import { Controller, Get, Post, Req, Res, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import * as client from 'openid-client';

/** With express-session. */
type LoginRequest = Request & {
  session: Request['session'] & {
    login?: { verifier: string; state: string };
    idToken?: string;
    user?: { uid: string };
  };
};

const { APP_URL = '', ISSUER_URL = '', CLIENT_ID = '', CLIENT_SECRET = '' } = process.env;

@Controller('auth')
export class AuthController implements OnModuleInit {
  #provider!: client.Configuration;

  async onModuleInit(): Promise<void> {
    this.#provider = await client.discovery(new URL(ISSUER_URL), CLIENT_ID, CLIENT_SECRET);
  }

  @Get('login')
  async login(@Req() { session }: LoginRequest, @Res() response: Response): Promise<void> {
    const verifier = client.randomPKCECodeVerifier();
    const state = client.randomState();
    session.login = { verifier, state };
    const url = client.buildAuthorizationUrl(this.#provider, {
      redirect_uri: `${APP_URL}/auth/callback`,
      scope: 'openid',
      state,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    });
    response.redirect(url.href);
  }

  @Get('callback')
  async callback(@Req() request: LoginRequest, @Res() response: Response): Promise<void> {
    const { verifier, state } = request.session.login ?? {};
    const url = new URL(request.originalUrl, APP_URL);
    const checks = { pkceCodeVerifier: verifier, expectedState: state };
    const tokens = await client.authorizationCodeGrant(this.#provider, url, checks);
    await new Promise<void>((resolve, reject) => {
      request.session.regenerate((error?: Error) => {
        if (error) reject(error);
        else resolve();
      });
    });
    request.session.idToken = tokens.id_token;
    request.session.user = { uid: tokens.claims()?.sub ?? '' };
    response.redirect('/');
  }

  @Post('logout')
  async logout(@Req() { session }: LoginRequest, @Res() response: Response): Promise<void> {
    const parameters = new URLSearchParams({ post_logout_redirect_uri: APP_URL });
    if (session.idToken !== undefined) parameters.set('id_token_hint', session.idToken);
    await new Promise<void>((resolve, reject) => {
      session.destroy((error?: Error) => {
        if (error) reject(error);
        else resolve();
      });
    });
    response.redirect(303, client.buildEndSessionUrl(this.#provider, parameters).href);
  }
}
