import { STATUS_CODES } from 'node:http';
import type { Request, Response } from 'express';
import { prefersPages } from './prefers-pages.js';

/** A failure as its user sees it. With RFC 9457, plus members of ours. */
export interface Problem {
  readonly status: number;
  /** One plain sentence, without internals. */
  readonly detail: string;
  /** A stable code for programs. */
  readonly code?: string;
  readonly retryAfterSeconds?: number;
}

export function sendProblem(request: Request, response: Response, problem: Problem): void {
  const { status, retryAfterSeconds, ...rest } = problem;
  const title = STATUS_CODES[status] ?? 'Error';
  response.status(status).set('Cache-Control', 'no-store');
  if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
  if (prefersPages(request)) {
    response.render('problem', { ...problem, title });
  } else {
    response.type('application/problem+json').json({ title, status, ...rest });
  }
}
