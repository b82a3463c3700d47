import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { MonotonicClock } from './monotonic-clock.js';

const HOUR = 60 * 60_000;

describe('a monotonic clock', () => {
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('begins at the date', () => {
    expect(Math.abs(new MonotonicClock().now() - Date.now())).toBeLessThan(50);
  });

  it('does not follow a date that jumps', () => {
    const clock = new MonotonicClock();
    const before = clock.now();
    for (const ms of [HOUR, -HOUR]) {
      const spy = jest.spyOn(Date, 'now').mockReturnValue(before + ms);
      expect(clock.now() - before).toBeLessThan(1_000);
      expect(clock.now()).toBeGreaterThanOrEqual(before);
      spy.mockRestore();
    }
  });

  it('runs with the fake timers of a test, and never goes back', () => {
    const clock = new MonotonicClock();
    const before = clock.now();
    jest.useFakeTimers();
    const begun = clock.now();
    expect(begun).toBeGreaterThanOrEqual(before);
    expect(begun - before).toBeLessThan(1_000);
    jest.advanceTimersByTime(HOUR);
    expect(clock.now() - begun).toBe(HOUR);
    jest.useRealTimers();
    expect(clock.now()).toBeGreaterThanOrEqual(begun + HOUR);
  });
});
