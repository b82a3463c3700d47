import { describe, expect, it } from '@jest/globals';
import { retryAfterMs } from './service-pause.js';

describe('retryAfterMs', () => {
  const now = Date.parse('Tue, 01 Jul 2025 12:00:00 GMT');
  const inTenSeconds = 'Tue, 01 Jul 2025 12:00:10 GMT';

  it.each([
    ['seconds', '7', undefined, 7000],
    ['no seconds', '0', undefined, 0],
    ['blanks around it', ' 7 ', undefined, 7000],
    ['a date, by this clock', inTenSeconds, undefined, 10_000],
    [
      'a date, by a service clock an hour ahead',
      'Tue, 01 Jul 2025 13:00:10 GMT',
      'Tue, 01 Jul 2025 13:00:00 GMT',
      10_000,
    ],
    [
      'a date, by a service clock an hour behind',
      'Tue, 01 Jul 2025 11:00:10 GMT',
      'Tue, 01 Jul 2025 11:00:00 GMT',
      10_000,
    ],
    ['a date, with an unreadable Date', inTenSeconds, 'yesterday', 10_000],
    ['a date that has passed', 'Tue, 01 Jul 2025 11:00:00 GMT', undefined, 0],
    ['the form of RFC 850', 'Tuesday, 01-Jul-25 12:00:10 GMT', undefined, 10_000],
    ['nothing', undefined, undefined, undefined],
    ['an empty value', '', undefined, undefined],
    ['words', 'soon', undefined, undefined],
    ['an hour', '3600', undefined, 3_600_000],
    ['years as an hour', '999999999', undefined, 3_600_000],
    ['more digits than a number has', '9'.repeat(400), undefined, 3_600_000],
    ['a date years ahead as an hour', 'Tue, 01 Jul 2098 12:00:00 GMT', undefined, 3_600_000],
    ['the first of repeated seconds', '5, 7', undefined, 5000],
  ])('reads %s', (_what, value, date, expected) => {
    expect(retryAfterMs(value, date, now)).toBe(expected);
  });

  it.each(['-5', '1.5', '1e3', 'soon 3'])('makes nothing of “%s”, which no specification allows', (value) => {
    expect(retryAfterMs(value, undefined, now)).toBeUndefined();
  });
});
