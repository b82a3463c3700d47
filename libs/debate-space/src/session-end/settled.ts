import type { Containment } from '../containment.js';
import type { SessionRequest } from './session-request.js';

export interface SettleOptions {
  readonly graceMs: number;
  /** Aborted when the app shuts down: nothing is waited for any more. */
  readonly hurry: AbortSignal;
  readonly containment: Containment;
}

/**
 * Waits until nothing that a request still does can change who its browser is logged in as: its response is closed
 * – `close`, because aborted ones never `finish` –, or has been past the point of no return for a grace period. Past it
 * are a stream whose head, with its cookies, has left, a WebSocket, and an aborted request whose handler may still run.
 */
export async function settled(request: SessionRequest, options: SettleOptions): Promise<void> {
  const { graceMs, hurry, containment } = options;
  if (request.isFinished || hurry.aborted) return;
  await new Promise<void>((resolve) => {
    let committedBefore = false;
    const isSettled = (): boolean => {
      if (request.isFinished || (committedBefore && request.isCommitted)) return true;
      committedBefore = request.isCommitted;
      return false;
    };
    const look = (): void => {
      if (containment.run('response', isSettled, true)) done();
    };
    // Looking twice in a grace period makes it between half of one and a whole one.
    const timer = setInterval(look, graceMs / 2).unref();
    const done = (): void => {
      clearInterval(timer);
      hurry.removeEventListener('abort', done);
      resolve();
    };
    request.onClose(containment, () => {
      if (request.isFinished) done();
    });
    hurry.addEventListener('abort', done, { once: true });
  });
}
