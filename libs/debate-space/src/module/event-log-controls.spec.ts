import { expect, it, jest } from '@jest/globals';
import { EventLog } from './event-log.js';

it.each(['\u202e', '\u2066', '\u200f', '\u061c', '\u001b', '\n'])(
  'a log line has no control that steers a terminal or turns its text around (%j)',
  (control) => {
    const error = jest.fn();
    const log = new EventLog({ log: error, warn: error, error });
    const parked = { type: 'erasure-unreadable', cause: 'a cause', hint: 'a hint' } as const;
    log.write({ ...parked, reference: `one ${control}` });
    log.write({ ...parked, reference: `two ${control}` });
    log.flush();
    expect(error.mock.calls).toEqual([
      ['erasure one \uFFFD is parked (a cause): a hint'],
      ['1 more parked, the last: erasure two \uFFFD (a cause): a hint'],
    ]);
  },
);
