import { describe, expect, it } from '@jest/globals';
import { causeOf, decide, seemsDown, type DeliveryAnswer, type Decision } from './delivery-policy.js';
import type { LogoutJob } from '../logout.js';

const DAY = 24 * 60 * 60_000;
const now = 1_750_000_000_000;
const job = (attempts = 0, rejections = 0, ageMs = 1000): LogoutJob => ({
  entry: { id: 'a', uid: 'alice', reason: 'destroyed', endedAt: now - ageMs },
  attempts,
  rejections,
});
const after = (answer: DeliveryAnswer, of = job(), random = 1): Decision =>
  decide(answer, of, DAY, now, random);

describe('the delivery policy', () => {
  it.each([200, 201, 202, 204, 299])('finishes a logout that is answered %d', (status) => {
    expect(after({ status })).toEqual({ action: 'finish' });
  });

  it.each<[string, DeliveryAnswer]>([
    ['no connection', { reason: 'ECONNREFUSED' }],
    ['no answer in time', { reason: 'TIMEOUT' }],
    ['no reason known', {}],
    ['408', { status: 408 }],
    ['425', { status: 425 }],
    ['429', { status: 429 }],
    ['500', { status: 500 }],
    ['502', { status: 502 }],
    ['503', { status: 503 }],
    ['599', { status: 599 }],
    ['400', { status: 400 }],
    ['301', { status: 301 }],
    ['302', { status: 302 }],
    ['307', { status: 307 }],
    ['404', { status: 404 }],
    ['405', { status: 405 }],
    ['200 with a web page', { status: 200, contradiction: 'a web page' }],
    ['200 with success: false', { status: 200, contradiction: 'success: false' }],
  ])('retries a logout after %s', (_what, answer) => {
    expect(after(answer)).toMatchObject({ action: 'retry', delayMs: 1000 });
  });

  it.each([
    [0, 1000],
    [1, 2000],
    [5, 32_000],
    [8, 256_000],
    [9, 300_000],
    [500, 300_000],
  ])('retries after %d earlier attempts at most %d ms later', (attempts, delayMs) => {
    expect(after({ status: 503 }, job(attempts))).toMatchObject({ delayMs });
    expect(after({ status: 503 }, job(attempts), 0.5)).toMatchObject({ delayMs: delayMs / 2 });
    expect(after({ status: 503 }, job(attempts), 0)).toMatchObject({ delayMs: 0 });
  });

  it.each<[string, DeliveryAnswer, { delayMs: number; pauseMs: number }]>([
    ['429 pauses the whole queue', { status: 429 }, { delayMs: 1000, pauseMs: 1000 }],
    ['429 as long as it says', { status: 429, retryAfterMs: 90_000 }, { delayMs: 90_000, pauseMs: 90_000 }],
    ['503 as long as it says', { status: 503, retryAfterMs: 90_000 }, { delayMs: 90_000, pauseMs: 90_000 }],
    ['503 without a word', { status: 503 }, { delayMs: 1000, pauseMs: 0 }],
    ['425 delays itself alone', { status: 425, retryAfterMs: 5000 }, { delayMs: 5000, pauseMs: 0 }],
    [
      'a short Retry-After never shortens the delay',
      { status: 503, retryAfterMs: 1 },
      { delayMs: 1000, pauseMs: 1000 },
    ],
  ])('sets the delay and the pause: %s', (_what, answer, expected) => {
    expect(after(answer)).toMatchObject({ action: 'retry', ...expected });
  });

  it('retries twice after a 400, then parks', () => {
    expect(after({ status: 400 }, job(0, 0))).toMatchObject({ action: 'retry', rejections: 1, pauseMs: 0 });
    expect(after({ status: 400 }, job(1, 1))).toMatchObject({ action: 'retry', rejections: 2 });
    expect(after({ status: 400 }, job(2, 2))).toMatchObject({ action: 'park' });
    // Failures in between are no rejections.
    expect(after({ status: 503 }, job(2, 2))).toMatchObject({ action: 'retry', rejections: 2 });
    expect(after({ status: 400 }, job(9, 0))).toMatchObject({ action: 'retry', rejections: 1 });
  });

  it.each<[number, string]>([
    [401, 'secretKey'],
    [403, 'secretKey'],
    [410, 'secretKey'],
    [415, 'secretKey'],
    [422, 'secretKey'],
  ])('parks immediately after a %d, with a hint that names %s', (status, hint) => {
    expect(after({ status })).toMatchObject({
      action: 'park',
      pauseMs: 0,
      hint: expect.stringContaining(hint),
    });
  });

  it.each([
    [29_000, 'secretKeyEncoding'],
    [-29_000, 'secretKeyEncoding'],
    [31_000, 'the clocks differ by 31 s'],
    [-7_200_000, 'the clocks differ by 7200 s'],
  ])('parks after a 400 with a clock that is %d ms off, with a hint that names %s', (clockSkewMs, hint) => {
    expect(after({ status: 400, clockSkewMs }, job(2, 2))).toMatchObject({
      action: 'park',
      rejections: 3,
      hint: expect.stringContaining(hint),
    });
  });

  it.each<DeliveryAnswer>([{ status: 503 }, { status: 429 }, { status: 400 }, { reason: 'TIMEOUT' }])(
    'parks after %j when the logout is older than logout.giveUpAfterMs',
    (answer) => {
      expect(after(answer, job(5, 0, DAY))).toMatchObject({
        action: 'park',
        hint: expect.stringContaining('logout.giveUpAfterMs'),
      });
      expect(after(answer, job(5, 0, DAY - 1))).toMatchObject({ action: 'retry' });
    },
  );

  it.each<[DeliveryAnswer, string]>([
    [{ status: 302 }, 'authUrl'],
    [{ status: 404 }, 'applicationName'],
    [{ status: 405 }, 'authUrl'],
    [{ status: 200, contradiction: 'a web page' }, 'authUrl'],
    [{ status: 200, contradiction: 'success: false' }, 'operator'],
    [{ status: 400 }, 'secretKey'],
    [{ status: 503 }, 'service is up'],
    [{ reason: 'logout.claims failed', local: true }, 'function'],
  ])('parks after %j for a whole logout.giveUpAfterMs with a hint that names %s', (answer, hint) => {
    expect(after(answer, job(20, 0, DAY))).toMatchObject({
      action: 'park',
      hint: expect.stringMatching(new RegExp(`logout.giveUpAfterMs; .*${hint}`)),
    });
  });

  it('makes the last attempt when the age is reached, never later', () => {
    expect(after({ status: 503 }, job(20, 0, DAY - 5000))).toMatchObject({ delayMs: 5000 });
    const years = { status: 429, retryAfterMs: 999_999_999_000 };
    expect(after(years, job(0, 0, DAY - 5000))).toMatchObject({ delayMs: 5000, pauseMs: 3_600_000 });
  });

  it('pauses the others for as long as the service asks, however old the one is that was answered', () => {
    const answer = { status: 429, retryAfterMs: 60_000 };
    expect(after(answer, job(9, 0, DAY - 1), 0)).toMatchObject({
      action: 'retry',
      delayMs: 1,
      pauseMs: 60_000,
    });
    expect(after(answer, job(9, 0, DAY), 0)).toMatchObject({ action: 'park', pauseMs: 60_000 });
  });

  it('counts the age of a retried logout from its retry', () => {
    const retried = { ...job(0, 0, 30 * DAY), retriedAt: now - DAY + 5000 };
    expect(after({ status: 503 }, retried)).toMatchObject({ action: 'retry' });
    expect(after({ status: 400 }, { ...retried, rejections: 2 })).toMatchObject({
      action: 'park',
      hint: expect.not.stringContaining('giveUpAfterMs'),
    });
    expect(after({ status: 503 }, { ...retried, retriedAt: now - DAY })).toMatchObject({
      action: 'park',
      hint: expect.stringContaining('giveUpAfterMs'),
    });
  });

  it('finishes a delivered logout even when it is older than logout.giveUpAfterMs', () => {
    expect(after({ status: 200 }, job(5, 0, 2 * DAY))).toEqual({ action: 'finish' });
  });
});

describe('a service', () => {
  it.each<[DeliveryAnswer, boolean]>([
    [{ reason: 'ECONNREFUSED' }, true],
    [{ status: 408 }, true],
    [{ status: 500 }, true],
    [{ status: 503 }, true],
    [{ status: 200 }, false],
    [{ status: 302 }, true],
    [{ status: 404 }, true],
    [{ status: 405 }, true],
    [{ status: 200, contradiction: 'a web page' }, true],
    [{ status: 200, contradiction: 'success: false' }, false], // about one user
    [{ status: 403 }, false],
    [{ status: 400 }, false],
    [{ status: 425 }, false],
    [{ status: 429 }, false],
    [{ reason: 'logout.claims failed', local: true }, false],
  ])('seems to be down after %j: %s', (answer, down) => {
    expect(seemsDown(answer)).toBe(down);
  });
});

describe('the cause of a failure', () => {
  it.each<[DeliveryAnswer, string]>([
    [{ status: 503, reason: 'x' }, '503'],
    [{ reason: 'ECONNREFUSED' }, 'ECONNREFUSED'],
    [{ status: 200, contradiction: 'a web page' }, '200 with a web page'],
    [{}, 'no answer'],
  ])('of %j is %s', (answer, cause) => {
    expect(causeOf(answer)).toBe(cause);
  });
});
