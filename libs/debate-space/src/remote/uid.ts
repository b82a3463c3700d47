import { InvalidUidError, type DebateSpaceOperation } from '../errors.js';

/**
 * A uid as one part of a path (service-interface.md, sections 4.2 and 4.3), percent-encoded.
 * @throws {InvalidUidError} when there is no such part
 */
export function uidPathPart(uid: string, operation: DebateSpaceOperation): string {
  assertUid(uid, operation);
  return encodeURIComponent(uid);
}

/**
 * Refuses what cannot be a uid. `.` and `..` are folded away by URL parsers, encoded or not, so that
 * `DELETE /users/..` would be another resource. Inside a uid, some proxies decode and fold them, too: `a%2F..%2Fb`.
 * @throws {InvalidUidError}
 */
export function assertUid(uid: unknown, operation: DebateSpaceOperation): asserts uid is string {
  const problem = uidProblem(uid);
  if (problem === undefined) return;
  throw new InvalidUidError(
    `the uid ${problem}; give the uid under which the user was registered in the service`,
    {
      operation,
      retryable: false,
      outcome: 'not-sent',
      attempts: 0,
    },
  );
}

/** What is wrong with a uid, as the end of a sentence without the uid; `undefined` when nothing is. */
export function uidProblem(uid: unknown): string | undefined {
  if (typeof uid !== 'string')
    return `must be a string and is ${uid === null ? 'null' : `of type ${typeof uid}`}`;
  if (uid === '') return 'is empty';
  if (uid.split(/[/\\]/).some((segment) => segment === '.' || segment === '..')) return 'has a dot segment';
  if (/\p{Cc}/u.test(uid)) return 'has control characters';
  if (!uid.isWellFormed()) return 'has a lone surrogate';
  return undefined;
}
