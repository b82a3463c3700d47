import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Clocks } from 'debate-space-fixtures/clocks.js';
import { SteadyClock } from './steady-clock.js';

const YEARS_MS = 4 * 365 * 86_400_000;

describe('the steadiness of a clock', () => {
  let clocks: Clocks;
  let clock: SteadyClock;
  /** @param pace how fast the clock of the storage runs */
  function run(minutes: number, pace = 1): void {
    for (let second = 0; second < minutes * 60; second += 5) {
      clocks.advance(5_000);
      clocks.storage += 5_000 * (pace - 1);
      clock.isSteady();
    }
  }
  beforeEach(() => {
    clocks = new Clocks();
    clock = new SteadyClock({ now: () => clocks.storage });
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('begins after ten minutes', () => {
    run(9.9);
    expect(clock.isSteady()).toBe(false);
    run(0.1);
    expect(clock.isSteady()).toBe(true);
  });

  it('begins earlier when the data was kept for less than ten minutes', () => {
    expect(clock.isSteady(0)).toBe(true);
    expect(clock.isSteady(60_000)).toBe(false);
    run(1);
    expect(clock.isSteady(60_000)).toBe(true);
  });

  it.each([YEARS_MS, -YEARS_MS])('ends with a jump of %d ms, and begins anew', (jump) => {
    run(60);
    clocks.storage += jump;
    expect(clock.isSteady()).toBe(false);
    run(9);
    expect(clock.isSteady()).toBe(false);
    run(1);
    expect(clock.isSteady()).toBe(true);
  });

  it('is not lost by a clock that drifts', () => {
    for (let hour = 0; hour < 3; hour += 1) {
      run(60, 1.0002);
      expect(clock.isSteady()).toBe(true);
    }
  });

  it('never begins while the clock runs at half speed, because it is years ahead', () => {
    run(60, 0.5);
    expect(clock.isSteady()).toBe(false);
  });
});
