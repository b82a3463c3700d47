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
  /** Of the page; default: by the status. */
  readonly heading?: string;
}

const HEADINGS: Readonly<Record<number, string>> = {
  403: 'You may not do this',
  404: 'Not found',
};

export function sendProblem(request: Request, response: Response, problem: Problem): void {
  const { status, retryAfterSeconds, heading = HEADINGS[status] ?? 'That did not work', ...rest } = problem;
  const title = STATUS_CODES[status] ?? 'Error';
  response.status(status).set('Cache-Control', 'no-store');
  if (retryAfterSeconds !== undefined) response.set('Retry-After', String(retryAfterSeconds));
  if (prefersPages(request)) {
    response.render('problem', { ...problem, title: heading, heading, ...wayOn(request, status) });
  } else {
    response.type('application/problem+json').json({ title, status, ...rest });
  }
}

/** Where a visitor can go on: an app that fails is tried again, and a refused form leads back to its page. */
function wayOn(request: Request, status: number): { href: string; way: string } | object {
  if (request.method === 'GET') return status >= 500 ? { href: request.originalUrl, way: 'Try again' } : {};
  const referrer = request.headers.referer ?? '';
  if (!URL.canParse(referrer)) return {};
  const { host, pathname, search } = new URL(referrer);
  return host === request.headers.host ? { href: `${pathname}${search}`, way: 'Back to the form' } : {};
}
