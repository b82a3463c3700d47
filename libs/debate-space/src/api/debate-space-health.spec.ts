import { afterEach, describe, expect, it, jest } from '@jest/globals';
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
  readonly overdueMs?: () => Promise<number | undefined>;
  /** `undefined`: the process has no worker. */
  readonly stalledMs?: number | undefined;
  readonly unverified?: number;
}

/** Loaded in each test, so that it imports the Terminus of the test. */
async function healthOf({ stats, overdueMs, stalledMs, unverified = 0 }: Parts = {}) {
  const { DebateSpaceHealth } = await import('./debate-space-health.js');
  return new DebateSpaceHealth({
    outbox: { stats: stats ?? (() => Promise.resolve(empty)) },
    erasures: { overdueMs: overdueMs ?? (() => Promise.resolve(undefined)), unverified },
    pause: { leftMs: 0 },
    watch: { isEmptied: false },
    runner: stalledMs === undefined ? undefined : { stalledMs },
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
      overdueMs: () => new Promise(() => undefined),
    });
    jest.useFakeTimers();
    const report = health.check();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(await report).toMatchObject({ state: 'degraded', problems: ['the outbox cannot be read'] });
  });

  it.each([
    [undefined, 'up'],
    [59_000, 'up'],
    [61_000, 'degraded'],
    [16 * 60_000, 'down'],
  ])('of jobs that have not run for %p ms is %s', async (stalledMs, state) => {
    expect((await (await healthOf({ stalledMs })).check()).state).toBe(state);
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
