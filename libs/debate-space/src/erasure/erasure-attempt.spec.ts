import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  AbortedError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  UnavailableError,
} from '../errors.js';
import type { DeliveryAnswer } from '../logout/delivery-policy.js';
import type { LogoutSender } from '../logout/logout-sender.js';
import type { Claim } from '../storage/storage.js';
import type { UsersApi } from '../service/calls/users-api.js';
import { ErasureAttempt } from './erasure-attempt.js';
import type { ErasureRepository } from './erasure-repository.js';
import type { BeforeErase } from './erasure.js';

const BEFORE_ERASE_TIMEOUT_MS = 30_000;
const erasure = { uid: 'alice', mode: 'delete', reference: 'r' } as const;
const untried = { attempts: 0, failures: 0, uncertain: undefined, rejections: 0 };
const claim = { subject: 'hash', ...untried } as Partial<Claim> as Claim;
const details = { operation: 'deleteUser', retryable: true, attempts: 1 } as const;
const yes = (): Promise<boolean> => Promise.resolve(true);

const noPage = { page: { users: [], page: 1 }, follows: false };

interface Parts
  extends Pick<UsersApi, 'prepareErasure' | 'erase' | 'list'>, Pick<ErasureRepository, 'markSending'> {
  readonly beforeErase?: BeforeErase;
  readonly logouts?: Pick<LogoutSender, 'send'>;
  readonly shutdownSignal: AbortSignal;
}

async function attempt(parts: Partial<Parts>, claimed = claim) {
  const { beforeErase, logouts, shutdownSignal, markSending, ...users }: Parts = {
    prepareErasure: () => Promise.resolve(undefined),
    erase: () => Promise.resolve(200),
    list: () => Promise.resolve(noPage),
    markSending: yes,
    shutdownSignal: new AbortController().signal,
    ...parts,
  };
  const repository = { markSending, waitsForDeletion: () => Promise.resolve(false) };
  const attempting = new ErasureAttempt(
    repository,
    users,
    logouts,
    beforeErase,
    shutdownSignal,
    () => undefined,
  );
  return attempting.make(erasure, claimed);
}
const failing = (error: Error) => ({ erase: () => Promise.reject(error) });

describe('an attempt at an erasure', () => {
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  it('is finished with the answer of the service', async () => {
    expect(await attempt({})).toEqual({ outcome: 'erased', status: 200, loggedOut: false });
  });

  it.each([
    { uncertain: undefined, outcome: 'not-found' },
    { uncertain: 'sent', outcome: 'erased' },
  ])('takes a 404 for $outcome', async ({ uncertain, outcome }) => {
    const result = await attempt({ erase: () => Promise.resolve(404) }, { ...claim, uncertain });
    expect(result).toMatchObject({ outcome, status: 404 });
  });

  it.each([
    [
      'an outage',
      'cannot be read',
      new UnavailableError('away', { ...details, outcome: 'refused', status: 404 }),
    ],
    [
      'the word of the service',
      'is refused to this API key',
      new PermissionError('no', { ...details, outcome: 'refused', status: 403 }),
    ],
  ])('takes a 404 for %s when the user list %s', async (what, _when, error) => {
    const erase = (): Promise<number> => Promise.resolve(404);
    const result = await attempt({ erase, list: () => Promise.reject(error) });
    const outage = {
      others: 'held-up',
      cause: '404',
      uncertain: false,
      hint: expect.stringContaining('baseUrl'),
    };
    expect(result).toMatchObject(what === 'an outage' ? outage : { outcome: 'not-found' });
  });

  it('delays the next attempt by an hour at most, though the service requests a year', async () => {
    const retryAfterMs = 365 * 24 * 60 * 60 * 1000;
    const error = new RateLimitedError('later', {
      ...details,
      outcome: 'refused',
      status: 429,
      retryAfterMs,
    });
    expect(await attempt(failing(error))).toMatchObject({ others: 'slower', delayMs: 60 * 60 * 1000 });
    const logouts = { send: () => Promise.resolve({ status: 503, retryAfterMs }) };
    expect(await attempt({ logouts })).toMatchObject({ others: 'held-up', delayMs: 60 * 60 * 1000 });
  });

  it('says which failures are of this user alone, and waits longer for those', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(1);
    const refused = new RefusedError('no', { ...details, outcome: 'refused', status: 422 });
    expect(await attempt(failing(refused))).toMatchObject({ others: 'unaffected', delayMs: 60_000 });
    const away = new UnavailableError('away', { ...details, outcome: 'unknown', status: 503 });
    expect(await attempt(failing(away))).toMatchObject({
      others: 'held-up',
      delayMs: 1_000,
      uncertain: true,
    });
  });

  it('is broken off by a shutdown, and not by its own limit of time', async () => {
    const error = new AbortedError('aborted', { ...details, outcome: 'not-sent' });
    expect(await attempt(failing(error))).toMatchObject({ brokenOff: false, others: 'unaffected' });
    const shutdownSignal = AbortSignal.abort();
    expect(await attempt({ ...failing(error), shutdownSignal })).toMatchObject({
      brokenOff: true,
      delayMs: 0,
    });
    expect(await attempt({ beforeErase: () => undefined, shutdownSignal })).toMatchObject({
      brokenOff: true,
    });
  });

  it('calls beforeErase when its slot of the rate limit has come, and sends only the logout before the request', async () => {
    const steps: string[] = [];
    const step = <T>(name: string, result: T): Promise<T> => {
      steps.push(name);
      return Promise.resolve(result);
    };
    await attempt({
      prepareErasure: () => step('slot', undefined),
      beforeErase: () => step('beforeErase', undefined),
      logouts: { send: () => step('logout', { status: 200 }) },
      markSending: () => step('mark as sending', true),
      erase: () => step('erase', 200),
    });
    expect(steps).toEqual(['slot', 'beforeErase', 'logout', 'mark as sending', 'erase']);
  });

  it('logs the user out under an id by which the service finds no receipt', async () => {
    const ids: string[] = [];
    const send = ({ id }: { readonly id: string }) => {
      ids.push(id);
      return Promise.resolve({ status: 200 });
    };
    for (let n = 0; n < 2; n += 1) await attempt({ logouts: { send } });
    expect(new Set([...ids, claim.subject]).size).toBe(3);
  });

  it.each([
    ['the host vetoes', { beforeErase: () => ({ veto: 'a lawsuit' }) }],
    ['beforeErase throws', { beforeErase: () => Promise.reject(new RangeError('of the host')) }],
    ['beforeErase answers nonsense', { beforeErase: () => 'no' as never }],
    ['the logout fails', { logouts: { send: () => Promise.resolve({ status: 503 }) } }],
    ['it was canceled meanwhile', { markSending: () => Promise.resolve(false) }],
  ])('sends nothing when %s', async (_what, parts) => {
    const erase = jest.fn(() => Promise.resolve(200));
    await attempt({ ...parts, erase });
    expect(erase).not.toHaveBeenCalled();
  });

  it.each<[string, DeliveryAnswer]>([
    ['the service refuses the logout for good', { status: 403 }],
    ['there is no logout route', { status: 404 }],
    ['a web page answers in place of the logout route', { status: 200, contradiction: 'a web page' }],
  ])('erases the user when %s', async (_when, answer) => {
    const logouts = { send: () => Promise.resolve(answer) };
    expect(await attempt({ logouts })).toMatchObject({ outcome: 'erased', loggedOut: false });
  });

  it('does not call beforeErase when no slot comes in time, or no access token', async () => {
    const beforeErase = jest.fn(() => undefined);
    const noSlot = await attempt({
      beforeErase,
      prepareErasure: () => Promise.resolve({ retryAfterMs: 42_000 }),
    });
    expect(noSlot).toMatchObject({ others: 'slower', delayMs: 42_000, sent: false });
    const error = new UnavailableError('no access token', { ...details, outcome: 'not-sent', status: 503 });
    const noToken = await attempt({ beforeErase, prepareErasure: () => Promise.reject(error) });
    expect(noToken).toMatchObject({ others: 'held-up', sent: false, uncertain: false });
    expect(beforeErase).not.toHaveBeenCalled();
  });

  it('does not wait for ever for the host', async () => {
    jest.useFakeTimers();
    const attempting = attempt({ beforeErase: () => new Promise(() => undefined) });
    await jest.advanceTimersByTimeAsync(BEFORE_ERASE_TIMEOUT_MS);
    expect(await attempting).toMatchObject({ cause: 'beforeErase failed', sent: false });
  });

  it('keeps the first 1000 characters of a reason', async () => {
    const result = await attempt({ beforeErase: () => ({ veto: 'x'.repeat(5000) }) });
    expect('outcome' in result && result.reason).toHaveLength(1000);
  });
});
