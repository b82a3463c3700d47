import { describe, expect, it } from '@jest/globals';
import type { AccessTokenAnswer } from './obtain-token.js';
import { accessToken, callApi, postForm, simulators, TOKEN_FIELDS } from '../testing/service-client.js';

const start = simulators();

describe('the token route', () => {
  it('hands out a token with its lifetime and the time of its creation', async () => {
    const sim = await start();
    const before = Math.floor(Date.now() / 1000);
    const response = await postForm(`${sim.url}/oauth/token`, TOKEN_FIELDS);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    const token = (await response.json()) as AccessTokenAnswer;
    expect(Object.keys(token).sort()).toEqual(['access_token', 'created_at', 'expires_in', 'token_type']);
    expect(token).toMatchObject({ token_type: 'Bearer', expires_in: 7200 });
    expect(Number.isInteger(token.created_at)).toBe(true);
    expect(token.created_at).toBeGreaterThanOrEqual(before);
  });

  it.each([
    ['no grant_type', { grant_type: undefined }, 400, 'invalid_request'],
    ['another grant_type', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    ['another client_id', { client_id: 'x' }, 401, 'invalid_client'],
    ['another client_secret', { client_secret: 'x' }, 401, 'invalid_client'],
    ['no client_secret', { client_secret: undefined }, 401, 'invalid_client'],
    ['another scope', { scope: 'admin' }, 400, 'invalid_scope'],
    ['two scopes', { scope: 'authentication public' }, 400, 'invalid_scope'],
    ['no scope', { scope: undefined }, 400, 'invalid_scope'],
  ])('refuses %s', async (_what, changes, status, error) => {
    const sim = await start();
    const fields = Object.entries({ ...TOKEN_FIELDS, ...changes }).filter(([, value]) => value !== undefined);
    const response = await postForm(`${sim.url}/oauth/token`, fields as [string, string][]);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error });
  });

  it('refuses JSON, and parameters in the query', async () => {
    const sim = await start();
    const url = `${sim.url}/oauth/token`;
    const headers = { 'content-type': 'application/json' };
    const json = await fetch(url, { method: 'POST', headers, body: JSON.stringify(TOKEN_FIELDS) });
    expect([json.status, await json.json()]).toMatchObject([400, { error: 'invalid_request' }]);
    const query = new URLSearchParams(TOKEN_FIELDS).toString();
    expect((await postForm(`${url}?${query}`, {})).status).toBe(400);
    expect(sim.received.all[1]?.query).toMatchObject({
      client_id: '[redacted]',
      client_secret: '[redacted]',
    });
  });

  it('refuses a body beyond its limit', async () => {
    const sim = await start();
    const response = await postForm(`${sim.url}/oauth/token`, { ...TOKEN_FIELDS, x: 'x'.repeat(70_000) });
    expect(response.status).toBe(413);
  });

  it('hands out a new token each time, and the old one lives on', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const [first, second] = [await accessToken(sim), await accessToken(sim)];
    expect(second.access_token).not.toBe(first.access_token);
    expect((await callApi(sim, 'DELETE', '/users/u-1', first.access_token)).status).toBe(200);
  });

  it('hands out a living token again, with the rest of its lifetime, when the option says so', async () => {
    const sim = await start({ reissueTokens: true });
    const first = await accessToken(sim);
    sim.clockOffsetSeconds = 100;
    const second = await accessToken(sim);
    expect(second).toMatchObject({ access_token: first.access_token, created_at: first.created_at });
    expect(second.expires_in).toBeLessThanOrEqual(7100);
    expect(second.expires_in).toBeGreaterThan(7000);
    expect((await accessToken(sim, 'public')).access_token).not.toBe(first.access_token);
    sim.clockOffsetSeconds = 7300;
    expect((await accessToken(sim)).access_token).not.toBe(first.access_token);
  });

  it('dates tokens by its own clock', async () => {
    const sim = await start({ clockOffsetSeconds: 1000 });
    const { created_at } = await accessToken(sim);
    expect(created_at - Date.now() / 1000).toBeGreaterThan(990);
  });
});
