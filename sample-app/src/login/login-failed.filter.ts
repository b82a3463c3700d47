import {
  Catch,
  ForbiddenException,
  UnauthorizedException,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { refuseLogin } from './refuse-login.js';

/** A wrong password, and a form that was open for too long, bring the form back. */
@Catch(UnauthorizedException, ForbiddenException)
export class LoginFailedFilter implements ExceptionFilter {
  catch(exception: UnauthorizedException | ForbiddenException, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    refuseLogin(
      http.getRequest<Request>(),
      http.getResponse<Response>(),
      exception instanceof ForbiddenException
        ? { status: 403, detail: 'This page was open for too long. Log in again.' }
        : { status: 401, detail: 'Wrong user name or password.' },
    );
  }
}
