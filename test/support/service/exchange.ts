import {
  AbortedError,
  DebateSpaceRequestError,
  NetworkError,
  TimeoutError,
} from '../../../libs/debate-space/src/errors.js';
import type { HttpReply } from '../../../libs/debate-space/src/service/http/exchange.js';

const KINDS = new Map<unknown, string>([
  [NetworkError, 'network'],
  [TimeoutError, 'timeout'],
  [AbortedError, 'aborted'],
]);

/** What came of an exchange: the reply, or why there was none and whether the request was sent. */
export async function outcomeOf(
  exchange: Promise<HttpReply>,
): Promise<{ reply: HttpReply } | { failure: object }> {
  try {
    return { reply: await exchange };
  } catch (error) {
    if (!(error instanceof DebateSpaceRequestError)) throw error;
    const { outcome, reason } = error;
    return { failure: { kind: KINDS.get(error.constructor), reason, sent: outcome !== 'not-sent' } };
  }
}
