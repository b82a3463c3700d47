import type { RequestHandler } from 'express';

/** Only what is ours runs on a page; its script may listen to the simulator. */
export function securityHeaders(simulatorUrl: string | undefined): RequestHandler {
  const simulator = simulatorUrl === undefined ? '' : ` ${new URL(simulatorUrl).origin}`;
  const policy = [
    `default-src 'none'`,
    `script-src 'self'`,
    `style-src 'self'`,
    `connect-src 'self'${simulator}`,
    `img-src data:`,
    `form-action 'self'`,
    `base-uri 'none'`,
    `frame-ancestors 'none'`,
  ].join('; ');
  return (_request, response, next) => {
    response.set({
      'Content-Security-Policy': policy,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'same-origin',
      // After a logout, the back button must not bring the page of the user back.
      'Cache-Control': 'no-store',
    });
    next();
  };
}
