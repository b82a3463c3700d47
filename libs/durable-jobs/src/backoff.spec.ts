import { describe, expect, it } from '@jest/globals';
import { fullJitter } from './circuit-breaker.js';

describe('fullJitter', () => {
  it.each([
    // failures, random, expected
    [1, 0, 0],
    [1, 1, 500],
    [2, 1, 1000],
    [3, 1, 2000],
    [3, 0.5, 1000],
    [6, 1, 10_000],
    [1000, 1, 10_000],
    [1_000_000, 0, 0],
  ])('after %d failures and at random %d waits %d ms', (failures, random, expected) => {
    expect(fullJitter(failures, 500, 10_000, random)).toBe(expected);
  });

  it('spreads over the whole span without a given number', () => {
    const waits = Array.from({ length: 500 }, () => fullJitter(3, 500, 10_000));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...waits)).toBeLessThanOrEqual(2000);
    expect(new Set(waits).size).toBeGreaterThan(50);
  });
});
