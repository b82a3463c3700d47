import type { IncomingMessage } from 'node:http';
import { Refusal } from './refusal.js';

/** No request of the interface needs more; anything longer is a mistake. */
const BODY_LIMIT_BYTES = 64 * 1024;

/** The client closed the connection before its request was complete. */
export class IncompleteRequest extends Error {
  override readonly name = 'IncompleteRequest';
}

/**
 * Reads a request body as UTF-8 text.
 * @throws Refusal 413 above the limit; IncompleteRequest when the client is gone
 */
export function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      // The rest flows on unread: an answer can only be seen by a client that is done sending.
      if (length <= BODY_LIMIT_BYTES) chunks.push(chunk);
    });
    request.on('end', () => {
      if (length <= BODY_LIMIT_BYTES) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(Refusal.of(413, `The body exceeds ${BODY_LIMIT_BYTES} bytes`));
    });
    const incomplete = (): void => {
      reject(new IncompleteRequest('the client closed the connection before its request was complete'));
    };
    request.on('error', incomplete);
    request.on('close', incomplete);
  });
}
