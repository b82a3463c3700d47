import type { Request } from 'express';
import { csrf } from '../session/csrf.js';
import { takeNotice } from '../session/notice.js';

/** What `views/login.eta` shows. */
export interface LoginPage {
  readonly csrfToken: string;
  readonly notice: string | undefined;
  /** Why the last try failed. */
  readonly failure: string | undefined;
  /** As it was typed in the last try. */
  readonly username: string;
}

export function loginPage(request: Request, failure?: string): LoginPage {
  const { username } = (request.body ?? {}) as { username?: unknown };
  return {
    csrfToken: csrf.generateToken(request),
    notice: takeNotice(request),
    failure,
    username: typeof username === 'string' ? username : '',
  };
}
