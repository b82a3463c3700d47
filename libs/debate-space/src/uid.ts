import { RefusedUid } from './uid-rule.js';
import { InvalidUidError, type DebateSpaceOperation } from './errors.js';

/**
 * The uid for a request to the service.
 * @param uid as `namedUid` or `foundUid` has read it
 * @throws {@link InvalidUidError}
 */
export function acceptedUid(uid: string | RefusedUid, operation: DebateSpaceOperation): string {
  if (typeof uid === 'string') return uid;
  const message = `the uid ${uid.problem}; give the uid under which the user was registered in the service`;
  throw new InvalidUidError(message, { operation, outcome: 'not-sent', attempts: 0 });
}
