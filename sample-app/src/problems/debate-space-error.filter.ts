import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceError, DebateSpaceRequestError } from 'nestjs-debate-space';
import { debateSpaceProblem } from './debate-space-problem.js';
import { sendProblem } from './problem.js';

/** Turns what the library throws into answers: the details for the log, a plain sentence for the user. */
@Catch(DebateSpaceError)
export class DebateSpaceErrorFilter implements ExceptionFilter {
  readonly #logger = new Logger('DebateSpaceErrors');

  catch(error: DebateSpaceError, host: ArgumentsHost): void {
    const details =
      error instanceof DebateSpaceRequestError
        ? ` (attempts: ${error.attempts}, outcome: ${error.outcome})`
        : '';
    // The library's messages hold no key, no token and no uid.
    this.#logger.warn(`${error.code} ${error.message}${details}`);
    const http = host.switchToHttp();
    sendProblem(http.getRequest<Request>(), http.getResponse<Response>(), debateSpaceProblem(error));
  }
}
