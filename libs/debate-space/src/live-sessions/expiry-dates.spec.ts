import { describe, expect, it } from '@jest/globals';
import { nextLook, renewalInterval } from './expiry-dates.js';

const now = Date.parse('2026-01-01T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const session = (expires: unknown): { cookie: unknown } => ({ cookie: { expires } });
const at = (time: number): string => new Date(time).toISOString();

describe('a session that is in the store although a sweep was to look for it', () => {
  const stale = session(at(now - 200 * HOUR));
  it.each([
    { name: 'soon, if its time came just now', given: stale, passed: 0, look: MINUTE },
    { name: 'less often as time passes', given: stale, passed: HOUR, look: HOUR / 2 },
    { name: 'every hour at least', given: stale, passed: 100 * HOUR, look: HOUR },
    { name: 'soon, if its cookie has no end', given: session(null), passed: 0, look: MINUTE },
    { name: 'soon, if its row has a later date', given: session(at(now + HOUR)), passed: 0, look: MINUTE },
    { name: 'when it expires, if that is soon', given: session(at(now + 1_000)), passed: 0, look: 1_000 },
    { name: 'when its time comes, if that is later', given: stale, passed: -HOUR, look: HOUR + MINUTE },
  ])('is looked at again $name', ({ given, passed, look }) => {
    expect(nextLook(given, now - passed, now, MINUTE)).toBe(now + look);
  });

  it.each([
    { name: 'has the date that the registry knows', date: now },
    { name: 'has that date in whole seconds', date: now - 999 },
  ])('has expired if its row $name', ({ date }) => {
    expect(nextLook(session(at(date)), now, now, MINUTE)).toBeUndefined();
  });
});

describe('a session that is used is registered again', () => {
  it.each([
    { name: 'once a minute', left: HOUR, every: MINUTE },
    { name: 'three times before it expires, if that is soon', left: 3_000, every: 1_000 },
    { name: 'each time if it has expired', left: -HOUR, every: 0 },
  ])('$name', ({ left, every }) => {
    expect(renewalInterval(now + left, now)).toBe(every);
  });
});
