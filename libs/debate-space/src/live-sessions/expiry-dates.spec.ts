import { describe, expect, it } from '@jest/globals';
import { nextLook } from './expiry-dates.js';
import { expiryOf, loadedExpiry, renewalInterval } from './expiry-dates.js';

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

describe('a session that is in the store although its time has come', () => {
  const stale = session(at(now - 200 * HOUR));
  it.each([
    { name: 'soon, if that was just now', given: stale, passed: 0, look: MINUTE },
    { name: 'less often as time goes by', given: stale, passed: HOUR, look: HOUR / 2 },
    { name: 'every hour at least', given: stale, passed: 100 * HOUR, look: HOUR },
    {
      name: 'soon, although its cookie has no end: a touch may have given it one',
      given: session(null),
      passed: 0,
      look: MINUTE,
    },
    {
      name: 'soon, although it says that it runs out later: it may have been shortened since',
      given: session(at(now + HOUR)),
      passed: 0,
      look: MINUTE,
    },
    {
      name: 'when it says that it runs out, if that is soon',
      given: session(at(now + 1_000)),
      passed: 0,
      look: 1_000,
    },
  ])('is looked at again $name', ({ given, passed, look }) => {
    expect(nextLook(given, now - passed, now, MINUTE)).toBe(now + look);
  });

  it.each([
    { name: 'at that time', date: now },
    { name: 'a moment before, as a store that keeps seconds says', date: now - 999 },
  ])('has expired if it was saved last with the date that the registry knows: $name', ({ date }) => {
    expect(nextLook(session(at(date)), now, now, MINUTE)).toBeUndefined();
  });
});

describe('a session that a request has loaded expires', () => {
  const cookie = { expires: at(now - HOUR), originalMaxAge: 2 * HOUR };
  const loaded = { ...cookie, expires: new Date(now + 2 * HOUR), originalExpires: new Date(now + HOUR) };
  it.each([
    { name: 'as express-session will touch it', given: { cookie }, touched: true, in: 2 * HOUR },
    { name: 'as it was stored, if the store has no touch', given: { cookie }, touched: false, in: -HOUR },
    { name: 'as it was stored before @fastify/session', given: { cookie: loaded }, touched: true, in: HOUR },
    { name: 'a day later when its cookie has no end', given: {}, touched: true, in: 24 * HOUR },
  ])('$name', ({ given, touched, in: inMs }) => {
    expect(loadedExpiry(given, now, touched)).toBe(now + inMs);
  });
});

describe('a session that is used is registered', () => {
  it.each([
    { name: 'once a minute', left: HOUR, every: MINUTE },
    { name: 'three times before it expires, if that is soon', left: 3_000, every: 1_000 },
    { name: 'at once when it has expired', left: -HOUR, every: 0 },
  ])('$name', ({ left, every }) => {
    expect(renewalInterval(now + left, now)).toBe(every);
  });
});
