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
/** A valid token with one of its parts replaced. */
const withPart = (n: 0 | 1 | 2, part: string) => () => signedToken().split('.').with(n, part).join('.');

describe('a logout token', () => {
  it.each([
    ['alg HS384', withHeader({ alg: 'HS384' })],
    ['alg HS512', withHeader({ alg: 'HS512' })],
    ['a typ in other letters', withHeader({ typ: 'Logout+JWT' })],
    ['no typ', withHeader({ typ: undefined })],
    ['an aud array that names the API key', withClaims({ aud: ['other', 'demo-api-key'] })],
    ['an iat ahead by less than 30 s', withClaims({ iat: secondsFromNow(20) })],
    ['an nbf ahead by less than 30 s', withClaims({ nbf: secondsFromNow(20) })],
    ['an exp past by less than 30 s', withClaims({ iat: secondsFromNow(-99), exp: secondsFromNow(-20) })],
    ['a member of the event', withClaims({ events: { [LOGOUT_EVENT]: { x: 1 } } })],
  ])('is accepted with %s', async (_what, token) => {
    const sim = await start();
    const response = await logOut(sim, token());
    expect([response.status, await response.json()]).toEqual([200, { success: true }]);
  });

  it.each<[string, () => string, string]>([
    ['nothing in it', () => '', 'three parts'],
    ['two parts', () => signedToken().split('.').slice(0, 2).join('.'), 'three parts'],
    ['four parts', () => `${signedToken()}.e30`, 'three parts'],
    ['padding', () => `${signedToken()}=`, 'signature is not base64url'],
    ['characters of plain Base64', withPart(2, `${'+'.repeat(42)}8`), 'not base64url'],
    ['stray bits after the signature', withPart(2, `${'A'.repeat(42)}B`), 'not base64url'],
    ['an empty signature', withPart(2, ''), 'signature is not base64url'],
    ['a header that is not JSON', withPart(0, 'e30h'), 'header is not JSON'],
    ['a header that is an array', withPart(0, encoded([])), 'not a JSON object'],
    ['claims that are no object', () => signedToken('u-1'), 'claims set is not a JSON object'],
    ['alg none', withHeader({ alg: 'none' }), 'alg is not accepted'],
    ['alg none, unsigned', () => `${encoded({ alg: 'none' })}.${encoded(logoutClaims())}.`, 'base64url'],
    ['an asymmetric alg', withHeader({ alg: 'RS256' }), 'alg is not accepted'],
    ['no alg', withHeader({ alg: undefined }), 'alg is not accepted'],
    ['alg in other letters', withHeader({ alg: 'hs256' }), 'alg is not accepted'],
    ['another typ', withHeader({ typ: 'JWT' }), 'typ is not logout+jwt'],
    ['a typ that is no string', withHeader({ typ: 1 }), 'typ is not logout+jwt'],
    ['a critical extension', withHeader({ crit: ['b64'], b64: false }), 'crit'],
    ['another key', () => signedToken(logoutClaims(), {}, 'another key'), 'signature does not match'],
    ['changed claims', withPart(1, encoded(logoutClaims({ sub: 'u-2' }))), 'signature'],
    ['a shortened signature', withPart(2, 'AAAA'), 'signature does not match'],
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
      'an exp that is past',
      withClaims({ iat: secondsFromNow(-99), exp: secondsFromNow(-40) }),
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
    expect([response.status, response.headers.get('cache-control')]).toEqual([400, 'no-store']);
    const error_description: unknown = expect.stringContaining(reason);
    expect(await response.json()).toMatchObject({ error: 'invalid_request', error_description });
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
    const refused = { operation: 'logout', accepted: false, status: 400, reason: error_description };
    expect(sim.received.all).toMatchObject([refused]);
  });

  it('is refused when its jti was seen before', async () => {
    const sim = await start();
    const token = signedToken();
    expect((await logOut(sim, token)).status).toBe(200);
    sim.debate.signIn('u-1');
    expect((await logOut(sim, token)).status).toBe(400);
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
    expect(sim.received.all[1]?.reason).toContain('jti was seen before');
  });

  it('is accepted with the algorithms of the options, and refused with others', async () => {
    const sim = await start({ algorithms: ['HS512'] });
    expect((await logOut(sim, signedToken())).status).toBe(400);
    expect((await logOut(sim, signedToken(logoutClaims(), { alg: 'HS512' }))).status).toBe(200);
  });

  it('is checked with the key that a Base64 secret key stands for when the option says so', async () => {
    const key = Buffer.from('a secret of thirty-two bytes ....');
    const sim = await start({ secretKey: key.toString('base64'), secretKeyEncoding: 'base64' });
    expect((await logOut(sim, signedToken(logoutClaims(), {}, key))).status).toBe(200);
    expect((await logOut(sim, signedToken(logoutClaims(), {}, key.toString('base64')))).status).toBe(400);
  });

  it.each([
    [-120, 400],
    [0, 200],
    [200, 400],
  ])("is checked by the service's clock: at %d s, %d", async (clockOffsetSeconds, status) => {
    const sim = await start({ clockOffsetSeconds });
    expect((await logOut(sim, signedToken())).status).toBe(status);
  });
});
