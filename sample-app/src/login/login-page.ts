import type { Request } from 'express';
import { csrf } from '../session/csrf.js';
import { takeNotice } from '../session/notice.js';
import { placeAfterLogin } from './place-after-login.js';

/** What `views/login.eta` shows. */
export interface LoginPage {
  readonly csrfToken: string;
  readonly notice: string | undefined;
  /** Why the last try failed. */
  readonly failure: string | undefined;
  /** As it was typed in the last try. */
  readonly username: string;
  /** Where the login leads; absent for the start page. */
  readonly to: string | undefined;
}

export function loginPage(request: Request, failure?: string): LoginPage {
  const { username } = (request.body ?? {}) as { username?: unknown };
  const to = placeAfterLogin(request);
  const notice = takeNotice(request);
  return {
    csrfToken: csrf.generateToken(request),
    notice: notice ?? (to !== undefined && failure === undefined ? 'Log in to continue.' : undefined),
    failure,
    username: typeof username === 'string' ? username : '',
    to,
  };
}
