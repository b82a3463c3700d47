import { Catch, UnauthorizedException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { refuseLogin } from './refuse-login.js';

/** A wrong password brings the form back. */
@Catch(UnauthorizedException)
export class LoginFailedFilter implements ExceptionFilter {
  catch(_exception: UnauthorizedException, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    refuseLogin(http.getRequest<Request>(), http.getResponse<Response>(), {
      status: 401,
      detail: 'This user name and password do not go together.',
    });
  }
}
