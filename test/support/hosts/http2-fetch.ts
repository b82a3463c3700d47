import { once } from 'node:events';
import { connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { Readable } from 'node:stream';
import type { Fetch } from '../browser/browser.js';

const WITHOUT_BODY = [204, 304];

/** Requests on one connection of HTTP/2 without TLS, which the global `fetch` does not speak. */
export function http2Fetch(origin: string): { readonly fetch: Fetch; close(): Promise<void> } {
  const connection = connect(origin);
  return {
    fetch: async (url, { method = 'GET', headers, body, signal }) => {
      const { pathname, search } = new URL(url);
      const isForm = body instanceof URLSearchParams;
      const type = isForm ? { 'content-type': 'application/x-www-form-urlencoded' } : {};
      const pseudo = { ':method': method, ':path': pathname + search };
      const stream = connection.request({ ...pseudo, ...Object.fromEntries(new Headers(headers)), ...type });
      const leave = (): void => {
        stream.close(constants.NGHTTP2_CANCEL);
      };
      signal?.addEventListener('abort', leave);
      stream.end(isForm ? body.toString() : undefined);
      const gone = once(stream, 'close').then(() => Promise.reject(new Error('the stream was closed')));
      const answered = once(stream, 'response') as Promise<[IncomingHttpHeaders & { ':status': number }]>;
      const [{ ':status': status, ...fields }] = await Promise.race([answered, gone]);
      gone.catch(() => undefined);
      const sent = new Headers();
      for (const [name, value] of Object.entries(fields)) {
        if (name.startsWith(':')) continue;
        for (const each of [value ?? []].flat()) sent.append(name, each);
      }
      return new Response(WITHOUT_BODY.includes(status) ? null : (Readable.toWeb(stream) as ReadableStream), {
        status,
        headers: sent,
      });
    },
    close: async () => {
      if (connection.destroyed) return;
      connection.destroy();
      await once(connection, 'close');
    },
  };
}
