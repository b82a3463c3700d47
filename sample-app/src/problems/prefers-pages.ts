import type { Request } from 'express';

/** Whether the client asks for HTML, as browsers do; all others get JSON. */
export function prefersPages(request: Request): boolean {
  return request.accepts(['json', 'html']) === 'html';
}
