import type { ServerResponse } from 'node:http';
import type { Containment } from '../../containment.js';

/**
 * Tells which cookies the head of a response has set, once it is written. Headers that are given to `writeHead` itself
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

/** In each of the forms that `writeHead` takes: an object, pairs, or names and values in turn. */
function setCookiesAmong(headers: unknown): string[] {
  if (typeof headers !== 'object' || headers === null) return [];
  const isFlat = Array.isArray(headers) && !Array.isArray(headers[0]);
  const pairs: unknown[][] = isFlat
    ? headers.flatMap((name: unknown, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : []))
    : Array.isArray(headers) ? (headers as unknown[][]) : Object.entries(headers); // prettier-ignore
  return pairs.flatMap(([name, value]) =>
    String(name).toLowerCase() === 'set-cookie' ? [value].flat().map(String) : [],
  );
}
