import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AdministratorsOnly } from '../login/admin.guard.js';
import { loginPage } from '../login/login-page.js';
import { loginFor } from '../login/place-after-login.js';
import { prefersPages } from './prefers-pages.js';
import { sendProblem } from './problem.js';

/** What guards and routing throw. Anyone who is not logged in is led to the login. */
@Catch(HttpException)
export class HttpExceptionFilter implements ExceptionFilter {
  catch(exception: HttpException, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const status = exception.getStatus();
    if (status === 401 && prefersPages(request)) {
      if (request.method === 'GET') response.redirect(303, loginFor(request));
      else response.status(401).render('login', loginPage(request, exception.message));
      return;
    }
    // Without a route, Nest's own message repeats the path.
    if (request.route === undefined) {
      sendProblem(request, response, { status, detail: 'There is no such page.', heading: 'Page not found' });
      return;
    }
    const heading = exception instanceof AdministratorsOnly ? 'Administrators only' : undefined;
    sendProblem(request, response, { status, detail: exception.message, heading });
  }
}
