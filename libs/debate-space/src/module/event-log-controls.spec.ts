import { expect, it, jest } from '@jest/globals';
import { EventLog } from './event-log.js';

it.each(['\u202e', '\u2066', '\u200f', '\u061c', '\u001b', '\n'])(
  'a log line has no control that steers a terminal or turns its text around (%j)',
  (control) => {
    const error = jest.fn();
    const log = new EventLog({ log: error, warn: error, error });
    const about = { mode: 'delete', uidHash: 'hash', attempts: 1, cause: 'a cause', hint: 'a hint' } as const;
    const parked = { type: 'erasure-parked', ...about } as const;
    log.write({ ...parked, reference: `one ${control}` });
    log.write({ ...parked, reference: `two ${control}` });
    log.flush();
    expect(error.mock.calls).toEqual([
      ['erasure of one \uFFFD is parked (a cause): a hint; then retry it'],
      ['1 more parked, the last: erasure of two \uFFFD (a cause): a hint; then retry it'],
    ]);
  },
);
