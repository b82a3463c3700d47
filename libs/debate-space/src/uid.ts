import { InvalidUidError, type DebateSpaceOperation } from './errors.js';

/**
 * Refuses what cannot be a uid. `.` and `..` are folded away by URL parsers, encoded or not, so that
 * `DELETE /users/..` would be another resource. Inside a uid, some proxies decode and fold them, too: `a%2F..%2Fb`.
 * @throws {@link InvalidUidError}
 */
export function assertUid(uid: unknown, operation: DebateSpaceOperation): asserts uid is string {
  const problem = validateUid(uid);
  if (problem === undefined) return;
  const message = `the uid ${problem}; give the uid under which the user was registered in the service`;
  throw new InvalidUidError(message, { operation, retryable: false, outcome: 'not-sent', attempts: 0 });
}

/** What is wrong with a uid, as the end of a sentence without the uid; `undefined` when nothing is. */
export function validateUid(uid: unknown): string | undefined {
  if (typeof uid !== 'string')
    return `must be a string and is ${uid === null ? 'null' : `of type ${typeof uid}`}`;
  if (uid === '') return 'is empty';
  if (hasDotSegment(uid)) return 'has a dot segment';
  if (/\p{Cc}/u.test(uid)) return 'has control characters';
  if (!uid.isWellFormed()) return 'has a lone surrogate';
  return undefined;
}

/** Whether a proxy that decodes `%2F` could fold the text into another path. */
export function hasDotSegment(text: string): boolean {
  return text.split(/[/\\]/).some((segment) => segment === '.' || segment === '..');
}
