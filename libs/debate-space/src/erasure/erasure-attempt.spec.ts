import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { AbortedError, RateLimitedError, RefusedError, UnavailableError } from '../errors.js';
import type { ErasureClaim } from './erasure-claim.js';
import { ErasureAttempt, HOOK_WITHIN_MS, type ErasureAttemptParts } from './erasure-attempt.js';

const claimed: ErasureClaim = {
  uidHash: 'hash',
  uid: 'alice',
  id: 'id',
  lease: 'lease',
  mode: 'delete',
  references: ['r'],
  attempts: 0,
  failures: 0,
  unknownBefore: false,
  rejections: 0,
  ageMs: 0,
};
const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
const yes = (): Promise<boolean> => Promise.resolve(true);

async function attempt(parts: Partial<ErasureAttemptParts>, claim = claimed) {
  const whole: ErasureAttemptParts = {
    erase: () => Promise.resolve(200),
    isServiceThere: yes,
    closing: new AbortController().signal,
    emit: () => undefined,
    ...parts,
  };
  return new ErasureAttempt(whole).make(claim, yes);
}
const failing = (error: Error) => ({ erase: () => Promise.reject(error) });

describe('an attempt at an erasure', () => {
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('is over with the answer of the service', async () => {
    expect(await attempt({})).toEqual({ end: { outcome: 'erased', status: 200, loggedOut: false } });
  });

  it.each([
    { unknownBefore: false, outcome: 'not-found' },
    { unknownBefore: true, outcome: 'erased' },
  ])('takes a 404 for $outcome', async ({ unknownBefore, outcome }) => {
    const result = await attempt({ erase: () => Promise.resolve(404) }, { ...claimed, unknownBefore });
    expect(result).toMatchObject({ end: { outcome, status: 404 } });
  });

  it('takes a 404 for nothing when the service is not there', async () => {
    const result = await attempt({ erase: () => Promise.resolve(404), isServiceThere: () => Promise.resolve(false) }); // prettier-ignore
    expect(result).toMatchObject({ others: 'held-up', setback: { cause: '404', unknown: false }, hint: expect.stringContaining('baseUrl') }); // prettier-ignore
  });

  it('does not believe a service that asks for a year', async () => {
    const retryAfterMs = 365 * 24 * 60 * 60 * 1000;
    const error = new RateLimitedError('later', { ...details, outcome: 'refused', status: 429, retryAfterMs }); // prettier-ignore
    expect(await attempt(failing(error))).toMatchObject({ others: 'slower', delayMs: 60 * 60 * 1000 });
    const logOut = () => Promise.resolve({ status: 503, retryAfterMs });
    expect(await attempt({ logOut })).toMatchObject({ others: 'held-up', delayMs: 60 * 60 * 1000 });
  });

  it('says which failures are of this user alone, and waits longer for those', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const refused = new RefusedError('no', { ...details, outcome: 'refused', status: 422 });
    expect(await attempt(failing(refused))).toMatchObject({ others: 'unaffected', delayMs: 60_000 });
    const away = new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 });
    expect(await attempt(failing(away))).toMatchObject({ others: 'held-up', delayMs: 1_000, setback: { unknown: true } }); // prettier-ignore
  });

  it('is broken off by a shutdown, and not by its own limit of time', async () => {
    const error = new AbortedError('aborted', { ...details, outcome: 'not-sent' });
    expect(await attempt(failing(error))).toMatchObject({ brokenOff: false, others: 'unaffected' });
    const closing = AbortSignal.abort();
    expect(await attempt({ ...failing(error), closing })).toMatchObject({ brokenOff: true, delayMs: 0 });
    expect(await attempt({ beforeErase: () => undefined, closing })).toMatchObject({ brokenOff: true });
  });

  it('does not wait for ever for the host', async () => {
    jest.useFakeTimers();
    const attempting = attempt({ beforeErase: () => new Promise(() => undefined) });
    await jest.advanceTimersByTimeAsync(HOOK_WITHIN_MS);
    expect(await attempting).toMatchObject({ setback: { cause: 'beforeErase failed', sent: false } });
  });

  it('keeps no more of a reason than it should', async () => {
    const result = await attempt({ beforeErase: () => ({ veto: 'x'.repeat(5000) }) });
    expect(result.end?.reason).toHaveLength(1000);
  });
});
