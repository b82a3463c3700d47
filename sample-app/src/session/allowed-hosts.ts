import { isIPv6 } from 'node:net';
import type { ConfigService } from '@nestjs/config';
import type { RequestHandler } from 'express';
import { isLoopback } from '../loopback.js';
import { sendProblem } from '../problems/problem.js';

/**
 * Refuses requests to other host names than the app's own. A site on the Internet can have its name resolve to
 * 127.0.0.1 (DNS rebinding): without this check, its scripts would read this app's pages.
 */
export function allowedHosts(config: ConfigService): RequestHandler {
  const names = `${config.get<string>('HOST') ?? ''} ${config.get<string>('ALLOWED_HOSTS') ?? ''}`;
  const allowed = new Set(names.split(/[\s,]+/).map(hostname));
  allowed.delete(undefined);
  return (request, response, next) => {
    const name = hostname(request.headers.host ?? '');
    if (name !== undefined && (isLoopback(name) || allowed.has(name))) next();
    else sendProblem(request, response, { status: 421, detail: REFUSAL });
  };
}

const REFUSAL =
  'This app does not answer to the host name of this request. Its operators allow a name with ALLOWED_HOSTS.';

/** As URLs have it: in lower case, without the port, IPv6 addresses in brackets. */
function hostname(host: string): string | undefined {
  const url = `http://${isIPv6(host) ? `[${host}]` : host}`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
