import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { DebateSpaceEvent } from '../events.js';
import { EventLog } from './event-log.js';

const MORE = 'more with this cause are not logged for 10 minutes';

describe('the event log', () => {
  let lines: string[];
  let log: EventLog;
  beforeEach(() => {
    jest.useFakeTimers();
    lines = [];
    const note = (line: string): unknown => lines.push(line);
    log = new EventLog({ debug: note, log: note, warn: note, error: note });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const parked = (id: string): DebateSpaceEvent => ({
    ...{ type: 'logout-parked', id, uid: 'ada', attempts: 1, tookMs: 3 },
    ...{ cause: '403', hint: 'compare secretKey' },
  });

  it('has each delivered logout at the level debug, where the logger has one, without the uid', () => {
    const delivered = { ...{ id: 'l-1', uid: 'ada' }, attempts: 2, tookMs: 3, delayMs: 5 };
    log.write({ type: 'logout-delivered', ...delivered });
    expect(lines).toEqual(['logout l-1 is delivered by attempt 2']);
    const nothing = { log: () => 0, warn: () => 0, error: () => 0 };
    new EventLog(nothing).write({ type: 'logout-delivered', ...delivered });
  });

  it('has one line in ten minutes for logouts that are parked for the same reason', () => {
    for (const id of ['a', 'b']) log.write(parked(id));
    jest.advanceTimersByTime(10 * 60_000);
    log.write(parked('c'));
    expect(lines).toEqual([
      `logout a is parked after attempt 1 (403): compare secretKey; to retry: npx debate-space outbox retry a; ${MORE}`,
      `logout c is parked after attempt 1 (403): compare secretKey; to retry: npx debate-space outbox retry c; ${MORE}`,
    ]);
  });

  it('has one line for each of the first hundred different faults in ten minutes', () => {
    for (let second = 0; second < 599; second += 1) {
      for (let n = 0; n < 150; n += 1) log.write({ type: 'fault', where: `place ${n}`, error: 'Error' });
      jest.advanceTimersByTime(1_000);
    }
    expect(lines).toHaveLength(100);
    expect(new Set(lines).size).toBe(100);
  });

  it.each(['\u202e', '\u2066', '\u200f', '\u061c', '\u001b', '\n'])(
    'has no control that steers a terminal or turns its text around (%j)',
    (control) => {
      log.write(parked(`one ${control}`));
      const [line = ''] = lines;
      expect(line).toMatch(
        /^logout one \uFFFD is parked .*; to retry: npx debate-space outbox retry one \uFFFD; /,
      );
      expect(line).not.toContain(control);
    },
  );
});
