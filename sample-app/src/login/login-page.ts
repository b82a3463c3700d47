import type { Request } from 'express';
import { csrf } from '../session/csrf.js';
import { takeNotice } from '../session/notice.js';

/** What `views/login.eta` shows. */
export interface LoginPage {
  readonly csrfToken: string;
  readonly notice: string | undefined;
  /** Why the last try failed. */
  readonly failure: string | undefined;
}

export function loginPage(request: Request, failure?: string): LoginPage {
  return { csrfToken: csrf.generateToken(request), notice: takeNotice(request), failure };
}
