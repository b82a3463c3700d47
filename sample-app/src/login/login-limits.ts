import { ipKeyGenerator, rateLimit, type Options, type RateLimitInfo } from 'express-rate-limit';
import type { Request, RequestHandler } from 'express';
import { inWords } from '../pages/in-words.js';
import { refuseLogin } from './refuse-login.js';

const WINDOW_MS = 15 * 60_000;
const MAX_FAILURES_PER_ADDRESS = 30;
const MAX_FAILURES_PER_NAME = 5;
const MAX_NAME_LENGTH = 100;

/**
 * Limits failed logins: per address, so that nobody tries many user names, and per address and user name, so that
 * nobody tries many passwords. An attacker locks out only themselves: other addresses can still log in.
 */
export function loginLimits(): RequestHandler[] {
  const options: Partial<Options> = {
    windowMs: WINDOW_MS,
    skipSuccessfulRequests: true,
    requestWasSuccessful: (_request, { statusCode }) => statusCode !== 401, // counts wrong passwords only
    standardHeaders: false,
    legacyHeaders: false,
    handler: (request, response) => {
      const { resetTime } = (request as Request & { rateLimit: RateLimitInfo }).rateLimit;
      const ms = resetTime === undefined ? WINDOW_MS : resetTime.getTime() - Date.now();
      refuseLogin(request, response, {
        status: 429,
        detail: `Too many failed logins. Try again in ${inWords(ms)}.`,
        retryAfterSeconds: Math.max(1, Math.ceil(ms / 1000)),
      });
    },
  };
  return [
    rateLimit({ ...options, limit: MAX_FAILURES_PER_ADDRESS, keyGenerator: address }),
    rateLimit({
      ...options,
      limit: MAX_FAILURES_PER_NAME,
      keyGenerator: (request) => `${address(request)} ${userName(request)}`,
    }),
  ];
}

function address({ ip = '' }: Request): string {
  return ipKeyGenerator(ip); // an IPv6 subscriber has a whole subnet
}

function userName({ body }: Request): string {
  const name = (body as { username?: unknown } | undefined)?.username;
  return typeof name === 'string' ? name.slice(0, MAX_NAME_LENGTH) : '';
}
