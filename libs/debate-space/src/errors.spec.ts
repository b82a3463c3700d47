import { describe, expect, it } from '@jest/globals';
import * as errors from './errors.js';

const details = {
  operation: 'deleteUser',
  status: 500,
  retryable: true,
  outcome: 'unknown',
  attempts: 2,
  retryAfterMs: 7000,
} as const;

describe('the errors', () => {
  // Hosts compare these: a change is a breaking one.
  it.each([
    [errors.InvalidUidError, 'InvalidUidError', 'ERR_DEBATE_SPACE_INVALID_UID'],
    [errors.InvalidArgumentError, 'InvalidArgumentError', 'ERR_DEBATE_SPACE_INVALID_ARGUMENT'],
    [errors.AuthenticationError, 'AuthenticationError', 'ERR_DEBATE_SPACE_AUTHENTICATION'],
    [errors.PermissionError, 'PermissionError', 'ERR_DEBATE_SPACE_PERMISSION'],
    [errors.UserNotFoundError, 'UserNotFoundError', 'ERR_DEBATE_SPACE_USER_NOT_FOUND'],
    [errors.RateLimitedError, 'RateLimitedError', 'ERR_DEBATE_SPACE_RATE_LIMITED'],
    [errors.RefusedError, 'RefusedError', 'ERR_DEBATE_SPACE_REFUSED'],
    [errors.UnavailableError, 'UnavailableError', 'ERR_DEBATE_SPACE_UNAVAILABLE'],
    [errors.NetworkError, 'NetworkError', 'ERR_DEBATE_SPACE_NETWORK'],
    [errors.TimeoutError, 'TimeoutError', 'ERR_DEBATE_SPACE_TIMEOUT'],
    [errors.UnexpectedResponseError, 'UnexpectedResponseError', 'ERR_DEBATE_SPACE_UNEXPECTED_RESPONSE'],
    [errors.AbortedError, 'AbortError', 'ERR_DEBATE_SPACE_ABORTED'],
  ])('%p is named %s and has the code %s', (Kind, name, code) => {
    const error = new Kind('what happened', details);
    expect(error).toBeInstanceOf(errors.DebateSpaceRequestError);
    expect(error).toBeInstanceOf(errors.DebateSpaceError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ ...details, name, code, message: 'deleteUser: what happened' });
    expect(error.stack).toMatch(/: deleteUser: what happened\n/);
  });

  it('of the storage have the hint in the message and as a property', () => {
    const error = new errors.StorageError('It fails', 'repair it', { reference: 'GDPR-1' });
    expect(error).toMatchObject({ problem: 'It fails', hint: 'repair it', reference: 'GDPR-1' });
    expect(error.message).toBe('It fails; hint: repair it');
    expect(new errors.StorageError('It fails').message).toBe('It fails');
  });

  it('list every problem of the options', () => {
    const problems = [
      { option: 'apiKey', problem: 'is missing', hint: 'copy it' },
      { option: 'http.timeoutMs', problem: 'must be a number', hint: 'leave it out' },
    ];
    const error = new errors.DebateSpaceOptionsError(problems);
    expect(error).toBeInstanceOf(errors.DebateSpaceError);
    expect(error).toMatchObject({ code: 'ERR_DEBATE_SPACE_OPTIONS', problems });
    expect(error.message).toContain('\n  - apiKey is missing; hint: copy it\n  - http.timeoutMs must');
  });
});
