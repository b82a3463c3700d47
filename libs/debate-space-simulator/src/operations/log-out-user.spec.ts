import { describe, expect, it } from '@jest/globals';
import { logOut, postForm, simulators, logoutClaims, signedToken } from '../testing/service-client.js';

const start = simulators();

describe('the logout route', () => {
  it('ends the debate session of the user named by sub, and nobody else’s', async () => {
    const sim = await start();
    sim.debate.signIn('u-1');
    sim.debate.signIn('u-2');
    const response = await logOut(sim, signedToken());
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(sim.debate.signedIn()).toEqual(['u-2']);
    expect(sim.received.logouts).toEqual(['u-1']);
    expect(sim.received.all[0]?.claims).toMatchObject({ sub: 'u-1', aud: 'demo-api-key' });
  });

  it('accepts a user who is not signed in, because the effect is there already', async () => {
    const sim = await start();
    expect((await logOut(sim, signedToken())).status).toBe(200);
  });

  it('refuses a jti it has seen before', async () => {
    const sim = await start();
    const token = signedToken();
    expect((await logOut(sim, token)).status).toBe(200);
    sim.debate.signIn('u-1');
    expect((await logOut(sim, token)).status).toBe(400);
    expect(sim.debate.isSignedIn('u-1')).toBe(true);
    expect(sim.received.all[1]?.reason).toContain('jti was seen before');
  });

  it('accepts only the algorithms of the options', async () => {
    const sim = await start({ algorithms: ['HS512'] });
    expect((await logOut(sim, signedToken())).status).toBe(400);
    expect((await logOut(sim, signedToken(logoutClaims(), { alg: 'HS512' }))).status).toBe(200);
  });

  it('derives the key from a Base64 secret key when the option says so', async () => {
    const key = Buffer.from('a secret of thirty-two bytes ....');
    const sim = await start({ secretKey: key.toString('base64'), secretKeyEncoding: 'base64' });
    expect((await logOut(sim, signedToken(logoutClaims(), {}, key))).status).toBe(200);
    expect((await logOut(sim, signedToken(logoutClaims(), {}, key.toString('base64')))).status).toBe(400);
  });

  it('goes by its own clock', async () => {
    const sim = await start({ clockOffsetSeconds: -120 });
    expect((await logOut(sim, signedToken())).status).toBe(400);
    expect(sim.received.all[0]?.reason).toContain('iat lies in the future');
    sim.clockOffsetSeconds = 0;
    expect((await logOut(sim, signedToken())).status).toBe(200);
    sim.clockOffsetSeconds = 200;
    expect((await logOut(sim, signedToken())).status).toBe(400);
  });

  it('knows one application, and takes its name percent-encoded', async () => {
    const sim = await start({ applicationName: 'town hall/1' });
    const logout_token = signedToken(logoutClaims({ iss: 'town hall/1' }));
    expect((await postForm(`${sim.url}/auth/logout/demo`, { logout_token })).status).toBe(404);
    const response = await postForm(`${sim.url}/auth/logout/town%20hall%2F1`, { logout_token });
    expect(response.status).toBe(200);
  });

  it('wants a form with one logout_token', async () => {
    const sim = await start();
    const url = `${sim.url}/auth/logout/demo`;
    const body = JSON.stringify({ logout_token: signedToken() });
    const json = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect(json.status).toBe(400);
    expect((await postForm(url, { token: signedToken() })).status).toBe(400);
    const twice: [string, string][] = [
      ['logout_token', signedToken()],
      ['logout_token', signedToken()],
    ];
    expect((await postForm(url, twice)).status).toBe(400);
    expect(sim.received.logouts).toEqual([]);
  });
});
