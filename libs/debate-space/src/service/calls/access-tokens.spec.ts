import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { AccessTokens, lifeSeconds, type IssuedToken, type Scope } from './access-tokens.js';

const HOUR = 60 * 60_000;
const never = new AbortController().signal;

/** Tokens that are counted and handed out when the test says so. */
class Issuer {
  readonly flights: { scope: Scope; answer: (token: IssuedToken) => void; fail: (error: Error) => void }[] =
    [];
  readonly tokens = new AccessTokens(
    (scope) =>
      new Promise((answer, fail) => {
        this.flights.push({ scope, answer, fail });
      }),
  );

  async issued(value: string, lifeMs = 2 * HOUR): Promise<string> {
    const token = this.tokens.get('public', never);
    this.flights.at(-1)?.answer({ value, lifeMs });
    return token;
  }
}

describe('access tokens', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('are fetched once for a thousand callers', async () => {
    const issuer = new Issuer();
    const callers = Array.from({ length: 1000 }, () => issuer.tokens.get('public', never));
    expect(issuer.flights).toHaveLength(1);
    issuer.flights[0]?.answer({ value: 'one', lifeMs: HOUR });
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['one']));
    expect(await issuer.tokens.get('public', never)).toBe('one');
    expect(issuer.flights).toHaveLength(1);
  });

  it('are kept apart by scope', async () => {
    const issuer = new Issuer();
    const both = [issuer.tokens.get('public', never), issuer.tokens.get('authentication', never)];
    expect(issuer.flights.map(({ scope }) => scope)).toEqual(['public', 'authentication']);
    issuer.flights[1]?.answer({ value: 'for users', lifeMs: HOUR });
    issuer.flights[0]?.answer({ value: 'for the list', lifeMs: HOUR });
    expect(await Promise.all(both)).toEqual(['for the list', 'for users']);
  });

  it('are renewed ahead in the background, and the living one is used meanwhile', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    jest.advanceTimersByTime(2 * HOUR - 5 * 60_000 - 1);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    expect(issuer.flights).toHaveLength(1);
    jest.advanceTimersByTime(1);
    const callers = Array.from({ length: 100 }, () => issuer.tokens.get('public', never));
    expect(new Set(await Promise.all(callers))).toEqual(new Set(['old']));
    expect(issuer.flights).toHaveLength(2);
    issuer.flights[1]?.answer({ value: 'new', lifeMs: HOUR });
    await jest.advanceTimersByTimeAsync(0);
    expect(await issuer.tokens.get('public', never)).toBe('new');
  });

  it('survive a renewal that fails, and are requested again only after half of the rest', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    jest.advanceTimersByTime(2 * HOUR - 5 * 60_000);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    issuer.flights[1]?.fail(new Error('the service is down'));
    await jest.advanceTimersByTimeAsync(60_000);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    expect(issuer.flights).toHaveLength(2);
    jest.advanceTimersByTime(2 * 60_000);
    expect(await issuer.tokens.get('public', never)).toBe('old');
    expect(issuer.flights).toHaveLength(3);
  });

  it('are not used in the last seconds of their life', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    jest.advanceTimersByTime(2 * HOUR - 5_000);
    expect(await issuer.issued('new')).toBe('new');
  });

  it('are waited for no longer than the caller’s signal, and the others go on', async () => {
    const issuer = new Issuer();
    const patience = new AbortController();
    const impatient = issuer.tokens.get('public', patience.signal);
    const patient = issuer.tokens.get('public', never);
    patience.abort();
    await expect(impatient).rejects.toMatchObject({ name: 'AbortError' });
    issuer.flights[0]?.answer({ value: 'one', lifeMs: HOUR });
    expect(await patient).toBe('one');
  });

  it('are fetched anew after a failure', async () => {
    const issuer = new Issuer();
    const first = issuer.tokens.get('public', never);
    issuer.flights[0]?.fail(new Error('the service is down'));
    await expect(first).rejects.toThrow('the service is down');
    expect(await issuer.issued('one')).toBe('one');
  });

  it('are dropped one by one: not the newer one that somebody has fetched meanwhile', async () => {
    const issuer = new Issuer();
    await issuer.issued('old');
    issuer.tokens.drop('public', 'old');
    await issuer.issued('new');
    issuer.tokens.drop('public', 'old');
    issuer.tokens.drop('authentication', 'new');
    expect(await issuer.tokens.get('public', never)).toBe('new');
    expect(issuer.flights).toHaveLength(2);
  });
});

describe('the life of a token', () => {
  const now = 1_000_000;
  it.each<[string, number, number | undefined, number]>([
    ['what expires_in says, without created_at', 7200, undefined, 7200],
    ['what is left, after created_at', 7200, now - 2200, 5000],
    ['never longer than expires_in', 7200, now + 99_999, 7200],
    ['the remaining time of a token handed out again', 2200, now - 5000, 2200],
  ])('is %s', (_what, expiresIn, createdAt, expected) => {
    expect(lifeSeconds(expiresIn, createdAt, now)).toBe(expected);
  });
});
