import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { prefersPages } from './prefers-pages.js';
import { sendProblem } from './problem.js';

/** What guards and routing throw. Anyone who opens a page without being logged in is led to the login. */
@Catch(HttpException)
export class HttpExceptionFilter implements ExceptionFilter {
  catch(exception: HttpException, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const status = exception.getStatus();
    if (status === 401 && request.method === 'GET' && prefersPages(request)) {
      response.redirect(303, '/login');
      return;
    }
    // Without a route, Nest's own message repeats the path.
    const detail = request.route === undefined ? 'There is no such page.' : exception.message;
    sendProblem(request, response, { status, detail });
  }
}
