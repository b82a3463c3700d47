import type { Request, Response } from 'express';
import { prefersPages } from '../problems/prefers-pages.js';
import { sendProblem } from '../problems/problem.js';
import { loginPage } from './login-page.js';

interface Refusal {
  readonly status: 401 | 403 | 429;
  readonly detail: string;
  readonly retryAfterSeconds?: number;
}

/** Brings the login form back, with the reason. */
export function refuseLogin(request: Request, response: Response, refusal: Refusal): void {
  const { status, detail, retryAfterSeconds } = refusal;
  if (!prefersPages(request)) {
    sendProblem(request, response, refusal);
    return;
  }
  if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
  response.status(status).render('login', loginPage(request, detail));
}
