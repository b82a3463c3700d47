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

const HEADINGS: Readonly<Record<number, string>> = {
  403: 'You may not do this',
  404: 'Not found',
  503: 'Unavailable for now',
  504: 'Unavailable for now',
};

export function sendProblem(request: Request, response: Response, problem: Problem): void {
  const { status, retryAfterSeconds, ...rest } = problem;
  const title = STATUS_CODES[status] ?? 'Error';
  response.status(status).set('Cache-Control', 'no-store');
  if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
  if (prefersPages(request)) {
    response.render('problem', { ...problem, title, heading: HEADINGS[status] ?? 'That did not work' });
  } else {
    response.type('application/problem+json').json({ title, status, ...rest });
  }
}
