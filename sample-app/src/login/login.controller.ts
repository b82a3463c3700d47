import { Controller, Get, Post, Redirect, Req, Res, UseFilters, UseGuards } from '@nestjs/common';
import type { Request, Response } from 'express';
import { SingleSignOnStandIn } from '../debate/single-sign-on-stand-in.js';
import { endSession } from '../session/end-session.js';
import { CurrentUser } from './current-user.decorator.js';
import { LoginFailedFilter } from './login-failed.filter.js';
import { loginPage } from './login-page.js';
import { LoginGuard } from './login.guard.js';
import { placeAfterLogin } from './place-after-login.js';
import type { User } from './user.js';

@Controller()
export class LoginController {
  constructor(private readonly singleSignOn: SingleSignOnStandIn) {}

  @Get('login')
  form(@Req() request: Request, @Res() response: Response): void {
    if (request.isAuthenticated()) response.redirect(303, placeAfterLogin(request) ?? '/');
    else response.render('login', loginPage(request));
  }

  @Post('login')
  @UseGuards(LoginGuard)
  @UseFilters(LoginFailedFilter)
  @Redirect()
  async logIn(
    @Req() request: Request,
    @CurrentUser() user: User,
  ): Promise<{ url: string; statusCode: number }> {
    const outcome = await this.singleSignOn.signIn(user);
    if (outcome !== 'signed in') {
      request.session.notice = `You are logged in here, but not signed in to the debate space: ${outcome}.`;
    }
    return { url: placeAfterLogin(request) ?? '/', statusCode: 303 };
  }

  /** Nothing in it is about the debate space, and yet the user is logged out there, too. */
  @Post('logout')
  @Redirect('/login', 303)
  async logOut(@Req() request: Request): Promise<void> {
    await endSession(request);
    request.session.notice = 'You are logged out.';
  }
}
