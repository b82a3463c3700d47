import type { ServerResponse } from 'node:http';
import type { Containment } from '../../async/containment.js';
import { cookieChangesOf, type CookieChanges } from '../verdict/cookie-changes.js';

/**
 * Reports how the head of a response changes cookies, once it is written. Headers that are given to `writeHead` itself
 * stay as they are: turning them into `setHeader` calls loses some forms of them (measured with on-headers 1.1).
 */
export function onHead(
  response: ServerResponse,
  containment: Containment,
  listener: (changes: CookieChanges) => void,
): void {
  const original = Reflect.get(response, 'writeHead') as (...args: unknown[]) => ServerResponse;
  response.writeHead = function writeHead(this: ServerResponse, ...args: unknown[]): ServerResponse {
    const returned = Reflect.apply(original, this, args);
    containment.run('response.writeHead', () => {
      listener(cookieChangesOf(this));
    });
    return returned;
  };
}
