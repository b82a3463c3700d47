import { describe, expect, it } from '@jest/globals';
import {
  logOut,
  simulators,
  encoded,
  logoutClaims,
  secondsFromNow,
  signedToken,
} from './testing/service-client.js';
import { LOGOUT_EVENT } from './logout-token.js';

const start = simulators();
const withClaims = (changes: Record<string, unknown>) => () => signedToken(logoutClaims(changes));
const withHeader = (header: Record<string, unknown>) => () => signedToken(logoutClaims(), header);
const split = (): [string, string, string] => signedToken().split('.') as [string, string, string];

describe('a logout token', () => {
  it.each([
    ['alg HS384', withHeader({ alg: 'HS384' })],
    ['alg HS512', withHeader({ alg: 'HS512' })],
    ['a typ in other letters', withHeader({ typ: 'Logout+JWT' })],
    ['no typ', withHeader({ typ: undefined })],
    ['an aud array that names the API key', withClaims({ aud: ['other', 'demo-api-key'] })],
    ['an iat ahead by less than the tolerance', withClaims({ iat: secondsFromNow(20) })],
    [
      'an exp past by less than the tolerance',
      withClaims({ iat: secondsFromNow(-99), exp: secondsFromNow(-20) }),
    ],
    ['a member of the event', withClaims({ events: { [LOGOUT_EVENT]: { x: 1 } } })],
  ])('is accepted with %s', async (_what, token) => {
    const sim = await start();
    const response = await logOut(sim, token());
    expect([response.status, await response.json()]).toEqual([200, { success: true }]);
  });

  it.each<[string, () => string, string]>([
    ['nothing in it', () => '', 'three parts'],
    ['two parts', () => split().slice(0, 2).join('.'), 'three parts'],
    ['four parts', () => `${signedToken()}.e30`, 'three parts'],
    ['padding', () => `${signedToken()}=`, 'signature is not base64url'],
    [
      'characters of plain Base64',
      () =>
        split()
          .with(2, `${'+'.repeat(42)}8`)
          .join('.'),
      'not base64url',
    ],
    [
      'stray bits after the signature',
      () =>
        split()
          .with(2, `${'A'.repeat(42)}B`)
          .join('.'),
      'not base64url',
    ],
    ['an empty signature', () => split().with(2, '').join('.'), 'signature is not base64url'],
    ['a header that is not JSON', () => split().with(0, 'e30h').join('.'), 'header is not JSON'],
    ['a header that is an array', () => split().with(0, encoded([])).join('.'), 'not a JSON object'],
    ['claims that are no object', () => signedToken('u-1'), 'claims set is not a JSON object'],
    ['alg none', withHeader({ alg: 'none' }), 'alg is not accepted'],
    [
      'alg none without a signature',
      () => `${encoded({ alg: 'none' })}.${encoded(logoutClaims())}.`,
      'base64url',
    ],
    ['an asymmetric alg', withHeader({ alg: 'RS256' }), 'alg is not accepted'],
    ['no alg', withHeader({ alg: undefined }), 'alg is not accepted'],
    ['alg in other letters', withHeader({ alg: 'hs256' }), 'alg is not accepted'],
    ['another typ', withHeader({ typ: 'JWT' }), 'typ is not logout+jwt'],
    ['a typ that is no string', withHeader({ typ: 1 }), 'typ is not logout+jwt'],
    ['a critical extension', withHeader({ crit: ['b64'], b64: false }), 'crit'],
    ['another key', () => signedToken(logoutClaims(), {}, 'another key'), 'signature does not match'],
    [
      'changed claims',
      () =>
        split()
          .with(1, encoded(logoutClaims({ sub: 'u-2' })))
          .join('.'),
      'signature',
    ],
    ['a shortened signature', () => split().with(2, 'AAAA').join('.'), 'signature does not match'],
    ['no sub', withClaims({ sub: undefined }), 'sub is not'],
    ['an empty sub', withClaims({ sub: '' }), 'sub is not'],
    ['a sub that is a number', withClaims({ sub: 1 }), 'sub is not'],
    ['no iss', withClaims({ iss: undefined }), 'iss is not'],
    ['another iss', withClaims({ iss: 'other' }), 'iss is not'],
    ['no aud', withClaims({ aud: undefined }), 'aud does not'],
    ['another aud', withClaims({ aud: 'other' }), 'aud does not'],
    ['an aud array without the API key', withClaims({ aud: ['other'] }), 'aud does not'],
    ['an aud array with a number in it', withClaims({ aud: ['demo-api-key', 1] }), 'aud does not'],
    ['no iat', withClaims({ iat: undefined }), 'iat is not a number'],
    ['an iat that is text', withClaims({ iat: String(secondsFromNow(0)) }), 'iat is not a number'],
    ['an iat in the future', withClaims({ iat: secondsFromNow(60), exp: secondsFromNow(120) }), 'iat lies'],
    ['an nbf in the future', withClaims({ nbf: secondsFromNow(60) }), 'nbf is not reached'],
    ['no exp', withClaims({ exp: undefined }), 'exp is not a number'],
    [
      'an exp in the past',
      withClaims({ iat: secondsFromNow(-120), exp: secondsFromNow(-40) }),
      'exp has passed',
    ],
    ['an exp before iat', withClaims({ exp: secondsFromNow(-5) }), 'exp is not after iat'],
    ['an exp more than two minutes after iat', withClaims({ exp: secondsFromNow(180) }), '120 s after iat'],
    ['no events', withClaims({ events: undefined }), 'events lacks'],
    ['events as an array', withClaims({ events: [LOGOUT_EVENT] }), 'events lacks'],
    ['another event', withClaims({ events: { 'urn:other': {} } }), 'events lacks'],
    ['an event that is no object', withClaims({ events: { [LOGOUT_EVENT]: true } }), 'events lacks'],
    ['an event that is an array', withClaims({ events: { [LOGOUT_EVENT]: [] } }), 'events lacks'],
    ['a nonce', withClaims({ nonce: 'n' }), 'nonce is forbidden'],
    ['a nonce of null', withClaims({ nonce: null }), 'nonce is forbidden'],
    ['no jti', withClaims({ jti: undefined }), 'jti is not'],
    ['a jti that is a number', withClaims({ jti: 7 }), 'jti is not'],
  ])('is refused with %s', async (_what, token, reason) => {
    const sim = await start();
    sim.debate.signIn('u-1');
    const response = await logOut(sim, token());
    expect(response.status).toBe(400);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const body: unknown = await response.json();
    expect(body).toMatchObject({
      error: 'invalid_request',
      error_description: expect.stringContaining(reason),
    });
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
    expect(sim.received.all).toMatchObject([
      {
        operation: 'logout',
        accepted: false,
        status: 400,
        reason: expect.stringContaining(reason),
      },
    ]);
  });
});
