import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { EventLog } from './event-log.js';

describe('the event log', () => {
  it('has each delivered logout at the level debug, where the logger has one, without the uid', () => {
    const lines: unknown[] = [];
    const nothing = { log: () => 0, warn: () => 0, error: () => 0 };
    const delivered = {
      type: 'logout-delivered',
      id: 'l-1',
      uid: 'ada',
      attempts: 2,
      tookMs: 3,
      delayMs: 5,
    } as const;
    new EventLog({ ...nothing, debug: (line: unknown) => lines.push(line) }).write(delivered);
    expect(lines).toEqual(['logout l-1 is delivered by attempt 2']);
    expect(() => {
      new EventLog(nothing).write(delivered);
    }).not.toThrow();
  });
});

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
