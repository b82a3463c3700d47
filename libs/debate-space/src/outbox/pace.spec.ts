import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { DebateSpaceEvent } from '../debate-space-event.js';
import { Pace } from './pace.js';

describe('the pace of delivery', () => {
  const events: DebateSpaceEvent[] = [];
  const newPace = () => new Pace(8, (event) => void events.push(event));
  afterEach(() => {
    events.length = 0;
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('is not held back at first', () => {
    expect(newPace().waitMs).toBeLessThanOrEqual(0);
    expect(newPace().most).toBe(8);
  });

  it('spaces the probes ever more while the service is down, up to half a minute', () => {
    jest.useFakeTimers();
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const pace = newPace();
    const waits = Array.from({ length: 8 }, () => {
      pace.heard(true, '503');
      const { waitMs } = pace;
      jest.advanceTimersByTime(waitMs);
      return waitMs;
    });
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]);
    expect(pace.most).toBe(1);
    expect(events).toEqual([{ type: 'service-down', cause: '503' }]);
  });

  it('takes those that were under way when the service went down for one failure', () => {
    jest.useFakeTimers();
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const pace = newPace();
    for (let underWay = 0; underWay < 8; underWay += 1) pace.heard(true, 'TIMEOUT');
    expect(pace.waitMs).toBe(1000);
  });

  it('is never so small that probes come without a break', () => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const pace = newPace();
    pace.heard(true, '503');
    expect(pace.waitMs).toBeGreaterThan(200);
  });

  it('rests when the service wants fewer requests, and does not call it down', () => {
    jest.useFakeTimers();
    const pace = newPace();
    pace.rest(5000);
    pace.rest(1000);
    pace.heard(false, '200'); // of those that were under way
    expect(pace.waitMs).toBe(5000);
    expect(pace.most).toBe(8);
    expect(events).toEqual([]);
  });

  it('is full again when the service answers', () => {
    jest.useFakeTimers();
    const pace = newPace();
    pace.heard(true, '503');
    pace.heard(false, '200');
    pace.heard(false, '200');
    expect(pace.most).toBe(8);
    expect(pace.waitMs).toBeLessThanOrEqual(0);
    expect(events.map(({ type }) => type)).toEqual(['service-down', 'service-up']);
  });
});
