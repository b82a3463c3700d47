import { InvalidArgumentError } from '../errors.js';
import type { BatchRequest } from './erasure-batch.js';
import type { ErasureMode } from './erasure.js';

const MAX_LENGTH = { reference: 128, requestedBy: 256 } as const;
const MODES: readonly unknown[] = ['anonymize', 'delete'] satisfies readonly ErasureMode[];

/**
 * Checks what a request says beside the uids.
 * @throws {@link InvalidArgumentError}
 */
export function batchRequest({ reference, mode, requestedBy }: BatchRequest): BatchRequest {
  if (!MODES.includes(mode)) throw invalid("mode must be 'anonymize' or 'delete'");
  assertText('reference', reference);
  if (requestedBy === undefined) return { reference, mode };
  assertText('requestedBy', requestedBy);
  return { reference, mode, requestedBy };
}

/** Whether there can be an erasure of this reference. */
export function isReference(value: unknown): value is string {
  return isText(value, MAX_LENGTH.reference);
}

function assertText(name: keyof typeof MAX_LENGTH, value: unknown): void {
  const most = MAX_LENGTH[name];
  if (isText(value, most)) return;
  throw invalid(
    `${name} must be a text of 1 to ${most} characters, without control characters or lone surrogates`,
  );
}

function isText(value: unknown, most: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= most && value.isWellFormed() && !/\p{Cc}/u.test(value); // prettier-ignore
}

/** An argument of a request that cannot be used. */
export function invalid(problem: string): InvalidArgumentError {
  return new InvalidArgumentError(problem, {
    operation: 'requestErasure',
    retryable: false,
    outcome: 'not-sent',
    attempts: 0,
  });
}
