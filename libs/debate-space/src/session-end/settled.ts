import type { ServerResponse } from 'node:http';
import { isClosed } from './session-request.js';

/**
 * Waits until nothing that a request still does can change who its browser is logged in as: its response is closed
 * – `close`, because aborted ones never `finish` –, or has been past the point of no return for a grace period. Past it
 * are a stream whose head, with its cookies, has left, and an aborted request whose handler may still be running.
 */
export async function settled(response: ServerResponse, graceMs: number, hurry: AbortSignal): Promise<void> {
  if (isOver(response) || hurry.aborted) return;
  await new Promise<void>((resolve) => {
    let seenBefore = false;
    // Looking twice in a grace period makes it between half of one and a whole one.
    const timer = setInterval(() => {
      if (isOver(response) || (seenBefore && (response.headersSent || isClosed(response)))) done();
      seenBefore = response.headersSent || isClosed(response);
    }, graceMs / 2).unref();
    const closed = (): void => {
      if (isOver(response)) done();
    };
    const done = (): void => {
      clearInterval(timer);
      response.off('close', closed);
      hurry.removeEventListener('abort', done);
      resolve();
    };
    response.on('close', closed);
    hurry.addEventListener('abort', done, { once: true });
  });
}

/** Closed after the handler had ended it. */
function isOver(response: ServerResponse): boolean {
  return isClosed(response) && response.writableEnded;
}
