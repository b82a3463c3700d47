import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { EventLog } from './event-log.js';

describe('the log of faults', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  it('has one line for each of the first hundred, and one a minute for further ones, however often they come', () => {
    jest.useFakeTimers();
    jest.advanceTimersByTime(1);
    const lines: unknown[] = [];
    const log = new EventLog({ log: () => 0, error: () => 0, warn: (line: unknown) => lines.push(line) });
    const fault = (where: string): void => {
      log.write({ type: 'fault', where, error: 'Error' });
    };
    for (let second = 0; second < 120; second += 1) {
      for (let n = 0; n < 150; n += 1) fault(`place ${n}`);
      jest.advanceTimersByTime(1_000);
    }
    expect(lines.slice(0, 100)).toHaveLength(new Set(lines.slice(0, 100)).size);
    expect(lines).toHaveLength(102);
  });
});
