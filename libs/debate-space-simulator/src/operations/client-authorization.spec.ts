import { describe, expect, it } from '@jest/globals';
import { accessToken, callApi, simulators } from '../testing/service-client.js';

const start = simulators();

describe('the routes under {base_url}', () => {
  it.each([
    ['no token', '', 'Bearer'],
    ['an unknown token', 'Bearer unknown', 'Bearer error="invalid_token"'],
    ['another scheme', 'Basic dTpw', 'Bearer'],
    ['a token without its scheme', 'unknown', 'Bearer'],
  ])('answer 401 to %s', async (_what, authorization, challenge) => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const response = await callApi(sim, 'DELETE', '/users/u-1', undefined, { authorization });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe(challenge);
    expect(await response.json()).toMatchObject({ success: false });
    expect(sim.users.has('u-1')).toBe(true);
  });

  it('answer 401 to an expired token and to a revoked one', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const expiring = await accessToken(sim);
    sim.clockOffsetSeconds = 7201;
    expect((await callApi(sim, 'DELETE', '/users/u-1', expiring.access_token)).status).toBe(401);
    const revoked = await accessToken(sim);
    sim.revokeTokens();
    expect((await callApi(sim, 'DELETE', '/users/u-1', revoked.access_token)).status).toBe(401);
  });

  it('answer 403 to a token of another scope', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const forList = await accessToken(sim, 'public');
    const forUsers = await accessToken(sim, 'authentication');
    const deletion = await callApi(sim, 'DELETE', '/users/u-1', forList.access_token);
    expect(deletion.status).toBe(403);
    expect(deletion.headers.get('www-authenticate')).toContain('scope="authentication"');
    expect((await callApi(sim, 'GET', '/users', forUsers.access_token)).status).toBe(403);
  });

  it('answer 415 without a JSON content type, whether or not there is a body', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const { access_token } = await accessToken(sim);
    for (const type of ['', 'text/plain', 'application/x-www-form-urlencoded']) {
      const response = await callApi(sim, 'POST', '/users/u-1/anonymize', access_token, {
        'content-type': type,
      });
      expect(response.status).toBe(415);
    }
    const charset = { 'content-type': 'application/json; charset=utf-8' };
    expect((await callApi(sim, 'POST', '/users/u-1/anonymize', access_token, charset)).status).toBe(200);
  });

  it('answer 429 with Retry-After above the rate limit, which the other routes do not count for', async () => {
    const sim = await start({ rateLimit: { requests: 2, perMs: 60_000 } });
    const { access_token } = await accessToken(sim, 'public');
    for (const status of [200, 200, 429]) {
      expect((await callApi(sim, 'GET', '/users', access_token)).status).toBe(status);
    }
    const refused = await callApi(sim, 'GET', '/users?api_key=demo-api-key');
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toMatch(/^[1-6]\d$/);
    expect((await accessToken(sim, 'public')).token_type).toBe('Bearer');
  });

  it('count nothing when the rate limit is off', async () => {
    const sim = await start({ rateLimit: false });
    const { access_token } = await accessToken(sim, 'public');
    const responses = await Promise.all(
      Array.from({ length: 120 }, () => callApi(sim, 'GET', '/users', access_token)),
    );
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  });
});
