import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { MonotonicClock } from './steady-clock.js';

const HOUR = 60 * 60_000;

describe('a monotonic clock', () => {
  afterEach(() => void jest.useRealTimers());

  it('begins at the date', () => {
    jest.useFakeTimers();
    expect(new MonotonicClock().now()).toBe(Date.now());
  });

  it('does not follow a date that jumps', () => {
    jest.useFakeTimers();
    const clock = new MonotonicClock();
    const before = clock.now();
    for (const ms of [HOUR, -HOUR]) {
      jest.setSystemTime(before + ms);
      expect(clock.now()).toBe(before);
    }
  });

  it('runs with the fake timers of a test, and never goes back', () => {
    const clock = new MonotonicClock();
    const before = clock.now();
    jest.useFakeTimers();
    const begun = clock.now();
    expect(begun).toBe(before);
    jest.advanceTimersByTime(HOUR);
    expect(clock.now() - begun).toBe(HOUR);
    jest.useRealTimers();
    expect(clock.now()).toBeGreaterThanOrEqual(begun + HOUR);
  });
});
