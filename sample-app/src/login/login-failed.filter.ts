import { Catch, UnauthorizedException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { sendProblem } from '../problems/problem.js';
import { prefersPages } from '../problems/prefers-pages.js';
import { loginPage } from './login-page.js';

/** A wrong password brings the form back. */
@Catch(UnauthorizedException)
export class LoginFailedFilter implements ExceptionFilter {
  catch(_exception: UnauthorizedException, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const failure = 'This user name and password do not go together.';
    if (prefersPages(request)) {
      response.status(401).render('login', loginPage(request, failure));
    } else {
      sendProblem(request, response, { status: 401, detail: failure });
    }
  }
}
