import {
  Catch,
  Controller,
  Get,
  Post,
  Redirect,
  Render,
  Req,
  UnauthorizedException,
  UseFilters,
  UseGuards,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { Access } from './access.guard.js';
import type { User } from './accounts.js';
import { CurrentUser, LoginGuard } from './passport.js';
import { endSession, takeNotice } from './sessions.js';
import { SimulatedSignIn } from './simulated-sign-in.js';

/** A wrong password brings the form back. */
@Catch(UnauthorizedException)
class LoginFailedFilter implements ExceptionFilter {
  catch(_error: UnauthorizedException, host: ArgumentsHost): void {
    const { session } = host.switchToHttp().getRequest<Request>();
    session.notice = { text: 'Wrong user name or password.', isBad: true };
    host.switchToHttp().getResponse<Response>().redirect(303, '/login');
  }
}

@Controller()
export class AuthController {
  constructor(private readonly simulator: SimulatedSignIn) {}

  @Get('login')
  @Access('everybody')
  @Render('login')
  form(@Req() request: Request): object {
    return { notice: takeNotice(request) };
  }

  @Post('login')
  @Access('everybody')
  @UseGuards(LoginGuard)
  @UseFilters(LoginFailedFilter)
  @Redirect('/', 303)
  async logIn(@Req() { session }: Request, @CurrentUser() { uid }: User): Promise<void> {
    const text = await this.simulator.signIn(uid);
    if (text !== undefined) session.notice = { text, isBad: true };
  }

  /** Nothing here is about the debate space, and yet the user is logged out there, too. */
  @Post('logout')
  @Redirect('/login', 303)
  async logOut(@Req() request: Request): Promise<void> {
    await endSession(request);
    request.session.notice = { text: 'You are logged out.' };
  }
}
