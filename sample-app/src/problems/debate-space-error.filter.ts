import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceRequestError } from 'nestjs-debate-space';
import { debateSpaceProblem } from './debate-space-problem.js';
import { sendProblem } from './problem.js';

/** Turns what `DebateSpaceService` throws into answers: the details for the log, a plain sentence for the user. */
@Catch(DebateSpaceRequestError)
export class DebateSpaceErrorFilter implements ExceptionFilter {
  readonly #logger = new Logger('DebateSpaceErrors');

  catch(error: DebateSpaceRequestError, host: ArgumentsHost): void {
    // The library's messages hold no key, no token and no uid.
    this.#logger.warn(
      `${error.code} ${error.message} (attempts: ${error.attempts}, outcome: ${error.outcome})`,
    );
    const http = host.switchToHttp();
    sendProblem(http.getRequest<Request>(), http.getResponse<Response>(), debateSpaceProblem(error));
  }
}
