import type { Containment } from '../../async/containment.js';
import { withTimeout } from '../../async/with-timeout.js';
import type { SessionRequest } from './session-request.js';

/** A response that takes longer does not notice what it would wait for. */
const MAX_WAIT_MS = 20;

/** Lets a response go first, with which a logout is answered: until the first of the requests is closed. */
export function afterResponse(
  requests: readonly SessionRequest[],
  containment: Containment,
): Promise<void> | undefined {
  if (requests.length === 0) return undefined;
  const closed = new Promise<void>((resolve) => {
    for (const request of requests) if (!request.onClose({ containment, closed: resolve })) resolve();
  });
  return withTimeout(closed, MAX_WAIT_MS, undefined);
}
