import type { RequestHandler } from 'express';
import { csrf } from '../session/csrf.js';

/** What every page of a logged-in user shows: who it is, and the button that logs out, which needs the token. */
export const pageContext: RequestHandler = (request, response, next) => {
  if (request.user) {
    Object.assign(response.locals, { user: request.user, csrfToken: csrf.generateToken(request) });
  }
  next();
};
