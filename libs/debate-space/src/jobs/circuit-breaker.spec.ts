import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { CircuitBreaker, fullJitter } from './circuit-breaker.js';

describe('the circuit breaker', () => {
  const changes: [state: string, cause: string][] = [];
  const newBreaker = () => new CircuitBreaker(8, (...change) => void changes.push(change));
  const record = (breaker: CircuitBreaker, ...results: readonly ('failure' | 'success')[]): void => {
    for (const result of results) breaker.record(result, result === 'failure' ? '503' : '200');
  };
  const failures = (count: number) => Array.from({ length: count }, () => 'failure' as const);
  afterEach(() => {
    changes.length = 0;
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('is closed at first', () => {
    const { waitMs, concurrency, isOpen } = newBreaker();
    expect(waitMs).toBeLessThanOrEqual(0);
    expect({ concurrency, isOpen }).toEqual({ concurrency: 8, isOpen: false });
  });

  it('opens after five failures in a row, and not earlier', () => {
    const breaker = newBreaker();
    record(breaker, ...failures(4), 'success', ...failures(4));
    expect({ isOpen: breaker.isOpen, concurrency: breaker.concurrency, changes }).toEqual({
      isOpen: false,
      concurrency: 8,
      changes: [],
    });
    record(breaker, 'failure');
    expect({ isOpen: breaker.isOpen, concurrency: breaker.concurrency }).toEqual({
      isOpen: true,
      concurrency: 1,
    });
    expect(changes).toEqual([['open', '503']]);
  });

  it('opens when most of the last twenty requests failed', () => {
    const breaker = newBreaker();
    for (let round = 0; round < 4; round += 1) record(breaker, 'failure', 'success');
    for (let round = 0; round < 3; round += 1) record(breaker, 'failure', 'failure', 'success');
    expect(breaker.isOpen).toBe(false);
    record(breaker, 'failure');
    expect(breaker.isOpen).toBe(true);
    expect(changes).toHaveLength(1);
  });

  it('stays closed while fifteen of a hundred requests fail', () => {
    const breaker = newBreaker();
    for (let request = 0; request < 10_000; request += 1) {
      record(breaker, [3, 7, 14].includes(request % 20) ? 'failure' : 'success');
    }
    expect(changes).toEqual([]);
  });

  it('spaces the probes ever more while the service is down, up to half a minute', () => {
    jest.useFakeTimers();
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const breaker = newBreaker();
    record(breaker, ...failures(4));
    const waits = Array.from({ length: 8 }, () => {
      record(breaker, 'failure');
      const { waitMs } = breaker;
      jest.advanceTimersByTime(waitMs);
      return waitMs;
    });
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    expect(changes).toEqual([['open', '503']]);
  });

  it('does not count requests that were sent before it opened as failed probes', () => {
    jest.useFakeTimers();
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const breaker = newBreaker();
    record(breaker, ...failures(8));
    expect(breaker.waitMs).toBe(1000);
  });

  it('never sends probes without a break', () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const breaker = newBreaker();
    record(breaker, ...failures(5));
    expect(breaker.waitMs).toBeGreaterThan(200);
  });

  it('rests when the service wants fewer requests, and stays closed', () => {
    jest.useFakeTimers();
    const breaker = newBreaker();
    breaker.rest(5000);
    breaker.rest(1000);
    record(breaker, 'success'); // sent before
    expect(breaker.waitMs).toBe(5000);
    expect(breaker.concurrency).toBe(8);
    expect(changes).toEqual([]);
  });

  it('closes with the first success, and counts from the beginning', () => {
    const breaker = newBreaker();
    record(breaker, ...failures(5), 'success', ...failures(4));
    expect(breaker.isOpen).toBe(false);
    expect(breaker.waitMs).toBeLessThanOrEqual(0);
    expect(changes).toEqual([
      ['open', '503'],
      ['closed', '200'],
    ]);
  });
});

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
