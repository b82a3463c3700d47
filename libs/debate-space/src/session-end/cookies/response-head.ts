import type { ServerResponse } from 'node:http';
import type { Containment } from '../../async/containment.js';
import { isObject } from '../is-object.js';

/**
 * Reports which cookies the head of a response has set, once it is written. Headers that are given to `writeHead` itself
 * stay as they are: turning them into `setHeader` calls loses some forms of them (measured with on-headers 1.1).
 */
export function onHead(
  response: ServerResponse,
  containment: Containment,
  listener: (setCookies: readonly string[]) => void,
): void {
  const original = Reflect.get(response, 'writeHead') as (...args: unknown[]) => ServerResponse;
  response.writeHead = function writeHead(this: ServerResponse, ...args: unknown[]): ServerResponse {
    const returned = Reflect.apply(original, this, args);
    containment.run('response.writeHead', () => {
      const set = this.getHeader('set-cookie');
      listener(set === undefined ? setCookiesAmong(args.at(-1)) : [set].flat().map(String));
    });
    return returned;
  };
}

function setCookiesAmong(headers: unknown): string[] {
  if (!isObject(headers)) return [];
  return pairsOf(headers).flatMap(([name, value]) =>
    String(name).toLowerCase() === 'set-cookie' ? [value].flat().map(String) : [],
  );
}

/** In each of the forms that `writeHead` takes: an object, pairs, or names and values in turn. */
function pairsOf(headers: object): readonly unknown[][] {
  if (!Array.isArray(headers)) return Object.entries(headers);
  if (Array.isArray(headers[0])) return headers as unknown[][];
  return headers.flatMap((name: unknown, n) => (n % 2 === 0 ? [[name, headers[n + 1] as unknown]] : []));
}
