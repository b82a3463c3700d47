import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { ErasureProblems } from '../erasure/erasure-repository.js';
import type { OutboxStats } from './debate-space-outbox.js';

const empty: OutboxStats = {
  engine: 'memory',
  durable: false,
  degraded: false,
  serviceDown: false,
  pending: 0,
  parked: 0,
};

interface Parts {
  readonly stats?: () => Promise<OutboxStats>;
  readonly problems?: () => Promise<ErasureProblems | undefined>;
  readonly refusal?: string;
  readonly stalledMs?: number;
  readonly unverified?: number;
}

/** Loaded in each test, so that it imports the Terminus of the test. */
async function healthOf({ stats, problems, refusal, stalledMs = 0, unverified = 0 }: Parts = {}) {
  const { DebateSpaceHealth } = await import('./debate-space-health.js');
  return new DebateSpaceHealth({
    outbox: { stats: stats ?? (() => Promise.resolve(empty)) },
    erasures: { problems: problems ?? (() => Promise.resolve(undefined)), unverified },
    pause: { leftMs: 0 },
    watch: { isEmptied: false, refusal },
    workers: { stalledMs },
  });
}

class HealthCheckError extends Error {
  readonly isHealthCheckError = true;
  constructor(
    message: string,
    readonly causes: unknown,
  ) {
    super(message);
  }
}
const HealthIndicatorService = jest.fn();
const down = { debateSpace: { status: 'down', state: 'down', problems: expect.any(Array) } };

describe('the health', () => {
  afterEach(() => {
    jest.useRealTimers();
    jest.resetModules();
  });

  it('is known after five seconds, although neither the logouts nor the erasures can be read', async () => {
    const health = await healthOf({
      stats: () => new Promise((resolve) => setTimeout(resolve, 5_000, { ...empty, unreadableMs: 0 })),
      problems: () => new Promise(() => undefined),
    });
    jest.useFakeTimers();
    const report = health.check();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(await report).toMatchObject({ state: 'degraded', problems: ['the storage cannot be read'] });
  });

  it.each([
    [0, 'up'],
    [59_000, 'up'],
    [61_000, 'degraded'],
    [16 * 60_000, 'down'],
  ])('of jobs that have not run for %p ms is %s', async (stalledMs, state) => {
    expect((await (await healthOf({ stalledMs })).check()).state).toBe(state);
  });

  it('is degraded by one parked erasure, long before it is overdue', async () => {
    const parked = { parked: 1, overdueMs: undefined };
    const health = await healthOf({ problems: () => Promise.resolve(parked) });
    expect(await health.check()).toMatchObject({
      state: 'degraded',
      problems: ['1 erasures are parked; see: npx debate-space erasures list'],
    });
  });

  it('names the reason why a storage that answers again cannot be used', async () => {
    const health = await healthOf({
      refusal: 'Postgres failed (28P01: wrong user or password)',
      stats: () => Promise.resolve({ ...empty, unreadableMs: 0, degraded: true }),
    });
    expect((await health.check()).problems).toEqual([
      'the storage cannot be used: Postgres failed (28P01: wrong user or password)',
      'the storage does not take logouts; a crash would lose those in memory',
    ]);
  });

  it('is thrown as the HealthCheckError of Terminus 10 when it is down', async () => {
    jest.unstable_mockModule('@nestjs/terminus', () => ({ HealthCheckError }));
    const indicator = (await healthOf({ stalledMs: Infinity })).indicator();
    await expect(indicator).rejects.toMatchObject({ isHealthCheckError: true, causes: down });
    expect(await (await healthOf()).indicator()).toMatchObject({ debateSpace: { status: 'up' } });
  });

  it.each([
    ['Terminus 11', () => ({ HealthCheckError, HealthIndicatorService })],
    ['Terminus 12', () => ({ HealthIndicatorService })],
    [
      'no Terminus',
      () => {
        throw new Error('Cannot find package');
      },
    ],
  ])('is returned with %s when it is down', async (_which, terminus) => {
    jest.unstable_mockModule('@nestjs/terminus', terminus);
    expect(await (await healthOf({ stalledMs: Infinity })).indicator()).toMatchObject(down);
  });
});
