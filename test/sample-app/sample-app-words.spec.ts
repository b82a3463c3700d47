import { describe, expect, it } from '@jest/globals';
import {
  AbortedError,
  AuthenticationError,
  ErasureError,
  InvalidArgumentError,
  InvalidUidError,
  NetworkError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  StorageError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  UserNotFoundError,
  type ErasureProgress,
} from 'nestjs-debate-space';
import { erasureView } from '../../sample-app/src/erasure/erasure-view.js';
import { debateSpaceProblem } from '../../sample-app/src/problems/debate-space-problem.js';

describe('the progress of an erasure', () => {
  const progress: ErasureProgress = {
    reference: 'leavers',
    mode: 'delete',
    state: 'running',
    complete: true,
    requestedAt: new Date(),
    total: 92,
    done: 79,
    notFound: 0,
    vetoed: 0,
    canceled: 0,
    failed: 0,
    waiting: 13,
    perMinute: 80,
    msLeft: 45_000,
    waitMs: 42_000,
  };

  it('says that it waits for the rate limit, and for how long', () => {
    expect(erasureView(progress).pace).toBe(
      'Waiting for the rate limit, continues in 42 seconds; 80 a minute; about 45 seconds left',
    );
  });

  it('names the cause during an outage, and no pace', () => {
    const { sentence, pace } = erasureView(progress, 'the debate space cannot be reached');
    expect([sentence, pace]).toEqual([
      'Not possible at the moment: the debate space cannot be reached. The app tries again automatically.',
      '',
    ]);
  });

  it('is not full when users are canceled', () => {
    const view = erasureView({ ...progress, state: 'canceled', done: 44, canceled: 48, waiting: 0 });
    expect([view.finished, view.sentence]).toEqual([44, 'Canceled: 44 done, 48 not erased.']);
  });
});

describe('the sentence about an erasure', () => {
  const counts = { total: 2, done: 0, notFound: 0, vetoed: 0, canceled: 0, failed: 0, waiting: 0 };
  const status = {
    reference: 'r',
    mode: 'delete',
    complete: true,
    requestedAt: new Date(0),
    ...counts,
  } as const;

  it('does not ask for the list of an erasure that was canceled before the list was read to its end', () => {
    const canceled = { complete: false, canceled: 2, finishedAt: new Date(1), state: 'canceled' } as const;
    expect(erasureView({ ...status, ...canceled }).sentence).toBe('Canceled: 0 done, 2 not erased.');
  });

  it('asks for the rest of a list that was not read to its end', () => {
    const view = erasureView({ ...status, complete: false, waiting: 2, state: 'waiting' });
    expect([view.state, view.stateText]).toEqual(['unread', 'list not read to its end']);
    expect(view.sentence).toContain('Upload it again');
  });

  it('does not say that those who failed are still being tried', () => {
    const { sentence } = erasureView({ ...status, failed: 2, state: 'overdue' });
    expect(sentence).toBe('2 users are not erased: every attempt failed. Fix the cause, then try again.');
  });
});

describe('the answer to an error of the library', () => {
  const secret = 'internals';
  const details = { operation: 'deleteUser', outcome: 'refused', retryable: false, attempts: 1 } as const;

  it.each([
    [UserNotFoundError, 404],
    [InvalidUidError, 400],
    [InvalidArgumentError, 400],
    [RateLimitedError, 503],
    [AuthenticationError, 502],
    [PermissionError, 502],
    [RefusedError, 502],
    [UnexpectedResponseError, 502],
    [UnavailableError, 503],
    [NetworkError, 503],
    [TimeoutError, 504],
    [AbortedError, 503],
  ])('is for %p the status %d, without its message', (Kind, status) => {
    const problem = debateSpaceProblem(new Kind(secret, details));
    expect(problem.status).toBe(status);
    expect(JSON.stringify(problem)).not.toContain(secret);
  });

  it('is 503 when the storage does not answer, 404 for an unknown erasure, and 409 for a reference that is taken', () => {
    const codes = ['ERR_DEBATE_SPACE_UNKNOWN_ERASURE', 'ERR_DEBATE_SPACE_ERASURE_CONFLICT'] as const;
    const problems = [new StorageError(secret), ...codes.map((code) => new ErasureError(code, secret))];
    expect(problems.map((error) => debateSpaceProblem(error).status)).toEqual([503, 404, 409]);
    expect(debateSpaceProblem(new StorageError(secret)).detail).toContain(
      'It is unknown whether anything was stored.',
    );
  });

  it('names a wait in whole seconds, a minute when the service named none for its limit', () => {
    const waiting = new UnavailableError(secret, { ...details, retryAfterMs: 1_200 });
    expect(debateSpaceProblem(waiting).retryAfterSeconds).toBe(2);
    expect(debateSpaceProblem(new RateLimitedError(secret, details)).retryAfterSeconds).toBe(60);
    expect(debateSpaceProblem(new UnavailableError(secret, details)).retryAfterSeconds).toBeUndefined();
  });
});
