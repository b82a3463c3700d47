import { describe, expect, it } from '@jest/globals';
import { causeOf, decide, seemsDown, type DeliveryAnswer, type Decision } from './delivery-policy.js';

const DAY = 24 * 60 * 60_000;
const job = (attempts = 0, rejections = 0, ageMs = 1000) => ({ attempts, rejections, ageMs });
type Row = [answer: DeliveryAnswer, down: boolean, hint: string];
const STRANGER = 'something else than the service answers; check authUrl';
const after = (answer: DeliveryAnswer, of = job(), random = 1): Decision => decide(answer, of, DAY, random);

describe('the delivery policy', () => {
  it.each([200, 201, 202, 204, 299])('finishes a logout that is answered %d', (status) => {
    expect(after({ status })).toEqual({ action: 'finish' });
  });

  it.each<Row>([
    [{ reason: 'ECONNREFUSED' }, true, 'service is up'],
    [{ reason: 'TIMEOUT' }, true, 'service is up'],
    [{}, true, 'service is up'],
    [{ status: 500 }, true, 'service is up'],
    [{ status: 503, contradiction: 'a web page' }, true, 'service is up'],
    [{ status: 599 }, true, 'service is up'],
    [{ status: 429 }, false, 'service is up'],
    [{ status: 302 }, true, 'redirect is never followed; .*authUrl'],
    [{ status: 307, contradiction: 'a web page' }, true, 'redirect is never followed; .*authUrl'],
    [{ status: 404 }, true, 'check applicationName and authUrl'],
    [{ status: 404, contradiction: 'a web page' }, true, 'check applicationName and authUrl'],
    [{ status: 405 }, true, 'not accept POST; check authUrl'],
    ...[407, 408, 421, 423, 425, 499].map((status): Row => [{ status }, true, STRANGER]),
    ...[200, 400, 401, 403, 413, 422].map((status): Row => [
      { status, contradiction: 'a web page' },
      true,
      STRANGER,
    ]),
    [{ status: 200, contradiction: 'success: false' }, false, 'ask its operator'], // about one user
    [{ reason: 'logout.claims failed', local: true }, false, 'function'],
  ])('retries a logout after %j until logout.giveUpAfterMs; down: %s, hint: %s', (answer, down, hint) => {
    expect(after(answer, job(5, 2, DAY - 1))).toMatchObject({ action: 'retry', rejections: 2 });
    expect(after(answer, job(5, 2, DAY))).toMatchObject({
      action: 'park',
      hint: expect.stringMatching(new RegExp(`^it is older than logout.giveUpAfterMs; .*${hint}`)),
    });
    expect(seemsDown(answer)).toBe(down);
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
    ['a refusal delays itself alone', { status: 400, retryAfterMs: 5000 }, { delayMs: 5000, pauseMs: 0 }],
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
    [401, 'secretKeyEncoding'],
    [403, 'secretKeyEncoding'],
    [415, 'ask its operator'],
    [422, 'ask its operator'],
  ])('parks immediately after a %d, with a hint that names %s', (status, hint) => {
    expect(after({ status })).toMatchObject({
      action: 'park',
      pauseMs: 0,
      hint: expect.stringContaining(hint),
    });
    expect(seemsDown({ status })).toBe(false);
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

  it('makes the last attempt when the age is reached, never later', () => {
    expect(after({ status: 503 }, job(20, 0, DAY - 5000))).toMatchObject({ delayMs: 5000 });
    const years = { status: 429, retryAfterMs: 999_999_999_000 };
    expect(after(years, job(0, 0, DAY - 5000))).toMatchObject({ delayMs: 5000, pauseMs: 3_600_000 });
  });

  it('pauses the others for as long as the service requests, however old the one is that was answered', () => {
    const answer = { status: 429, retryAfterMs: 60_000 };
    expect(after(answer, job(9, 0, DAY - 1), 0)).toMatchObject({
      action: 'retry',
      delayMs: 1,
      pauseMs: 60_000,
    });
    expect(after(answer, job(9, 0, DAY), 0)).toMatchObject({ action: 'park', pauseMs: 60_000 });
  });

  it('finishes a delivered logout even when it is older than logout.giveUpAfterMs', () => {
    expect(after({ status: 200 }, job(5, 0, 2 * DAY))).toEqual({ action: 'finish' });
  });
});

describe('the cause of a failure', () => {
  it.each<[DeliveryAnswer, string]>([
    [{ status: 503, reason: 'x' }, '503'],
    [{ reason: 'ECONNREFUSED' }, 'ECONNREFUSED'],
    [{ status: 403, contradiction: 'a web page' }, '403 with a web page'],
    [{ status: 200, contradiction: 'success: false' }, '200 with success: false'],
    [{}, 'no answer'],
  ])('of %j is %s', (answer, cause) => {
    expect(causeOf(answer)).toBe(cause);
  });
});
