import { describe, expect, it } from '@jest/globals';
import { expiryOf, nextLook } from './session-expiry.js';

const now = Date.parse('2026-01-01T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const session = (expires: unknown): { cookie: unknown } => ({ cookie: { expires } });
const at = (time: number): string => new Date(time).toISOString();

describe('a session runs out', () => {
  it.each([
    { name: 'when its cookie does', given: session(new Date(now + HOUR)), expiry: now + HOUR },
    { name: 'as the store has written it', given: session(at(now + HOUR)), expiry: now + HOUR },
    { name: 'a day later when its cookie has no end', given: session(null), expiry: now + 24 * HOUR },
    { name: 'a day later when nobody can read when', given: session('soon'), expiry: now + 24 * HOUR },
    { name: 'a day later without a cookie', given: {}, expiry: now + 24 * HOUR },
  ])('$name', ({ given, expiry }) => {
    expect(expiryOf(given, now)).toBe(expiry);
  });
});

describe('a session that is in the store although its time has come is looked at again', () => {
  it.each([
    { name: 'when it says that it runs out', given: session(at(now + HOUR)), look: HOUR },
    { name: 'soon, if that was just now', given: session(at(now)), look: MINUTE },
    { name: 'less often as time goes by', given: session(at(now - HOUR)), look: HOUR / 2 },
    { name: 'every hour at least', given: session(at(now - 100 * HOUR)), look: HOUR },
    { name: 'in an hour, when its cookie has no end', given: session(null), look: HOUR },
  ])('$name', ({ given, look }) => {
    expect(nextLook(given, now, MINUTE)).toBe(now + look);
  });
});
