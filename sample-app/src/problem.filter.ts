import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DebateSpaceError, type DebateSpaceErrorCode } from 'nestjs-debate-space';

/** Errors that a user can understand. Every other error of the debate space is its operators' business. */
const ANSWERS: Partial<Record<DebateSpaceErrorCode, readonly [status: number, detail: string]>> = {
  ERR_DEBATE_SPACE_INVALID_UID: [400, 'The debate space cannot know a user of this name.'],
  ERR_DEBATE_SPACE_UNKNOWN_ERASURE: [404, 'The reference is not found.'],
  ERR_DEBATE_SPACE_STORAGE: [
    503,
    'The storage of this app does not answer. It is unknown whether your request was stored. Repeat it later: nobody is erased twice.',
  ],
};
const UNAVAILABLE = [503, 'The debate space is not available. Please try again later.'] as const;
const TITLES: Readonly<Record<number, string>> = {
  403: 'You may not do this',
  404: 'Not found',
  503: 'Not available',
};

/** Answers errors with a page. A visitor who is not logged in is sent to the login. */
@Catch(HttpException, DebateSpaceError)
export class ProblemFilter implements ExceptionFilter<HttpException | DebateSpaceError> {
  readonly #logger = new Logger(ProblemFilter.name);

  catch(error: HttpException | DebateSpaceError, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const [status, detail] = this.#answer(error, request);
    if (status === 401) {
      response.redirect(303, '/login');
      return;
    }
    response.status(status).render('problem', { title: TITLES[status] ?? 'That did not work', detail });
  }

  #answer(error: HttpException | DebateSpaceError, request: Request): readonly [number, string] {
    if (error instanceof DebateSpaceError) {
      this.#logger.warn(`${error.code} ${error.message}`); // without keys, tokens and uids
      return ANSWERS[error.code] ?? UNAVAILABLE;
    }
    const isRouted = Boolean(request.route); // else the message of Nest repeats the path
    return [error.getStatus(), isRouted ? error.message : 'The page is not found.'];
  }
}
