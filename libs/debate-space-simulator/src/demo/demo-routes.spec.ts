import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { openEvents, deleteUser, logOut, simulators, signedToken } from '../testing/service-client.js';

const start = simulators();

const post =
  (route: string) =>
  (url: string, body: unknown, type = 'application/json'): Promise<Response> => {
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    return fetch(`${url}/simulator/${route}`, {
      method: 'POST',
      headers: { 'content-type': type },
      body: sent,
    });
  };
const signIn = post('sign-in');
const setMode = post('mode');
const stateOf = async (url: string): Promise<unknown> => (await fetch(`${url}/simulator/state`)).json();

describe('the page', () => {
  it('is HTML that runs its own script alone, escapes what it is given, and is not on record', async () => {
    const sim = await start({ applicationName: '<b>&"\'' });
    const response = await fetch(sim.url);
    const html = await response.text();
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    const nonce = /'nonce-([^']+)'/.exec(response.headers.get('content-security-policy') ?? '')?.[1];
    expect(html).toContain(`<script nonce="${nonce ?? ''}">`);
    expect(html).toContain('<h1>Debate space of &#60;b&#62;&#38;&#34;&#39;</h1>');
    expect(html).not.toContain('<b>');
    expect(html).not.toContain('innerHTML');
    expect(html).toContain('name="viewport"');
    await stateOf(sim.url);
    expect(sim.received.count).toBe(0);
  });
});

describe('a request to another host name', () => {
  const ask = async (
    url: string,
    host: string,
    method = 'GET',
  ): Promise<readonly [status: number | undefined, body: string]> => {
    const sent = request(url, { method, headers: { host, 'content-type': 'application/json' } });
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
    return [response.statusCode, await text(response)];
  };

  it.each([
    ['GET', '/'],
    ['GET', '/simulator/state'],
    ['GET', '/simulator/events'],
    ['POST', '/simulator/mode'],
    ['POST', '/simulator/sign-in'],
    ['GET', '/api/v1/users?api_key=demo-api-key'],
    ['DELETE', '/api/v1/users/u-1'],
    ['POST', '/oauth/token'],
    ['POST', '/auth/logout/demo'],
    ['GET', '/elsewhere'],
  ])('is refused by %s %s, and says why', async (method, path) => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    const hosts = 'evil.example evil.example:80 localhost.evil.example 127.0.0.1.evil.example 126.0.0.1';
    for (const host of hosts.split(' ')) {
      const [status, body] = await ask(`${sim.url}${path}`, host, method);
      expect([host, status]).toEqual([host, 403]);
      expect(body).toContain('answers to localhost, 127.0.0.1 and [::1] only');
    }
  });

  it.each(['localhost', 'localhost:8080', '127.0.0.1', '[::1]:3000', 'LOCALHOST', 'demo.localhost'])(
    'is answered to %s',
    async (host) => {
      const sim = await start();
      expect((await ask(`${sim.url}/simulator/state`, host))[0]).toBe(200);
    },
  );

  it('is answered to a name that the simulator is told', async () => {
    const sim = await start({ host: '::1', hostNames: ['Debate.internal', '10.0.0.7'] });
    const path = `${sim.baseUrl}/users?api_key=demo-api-key`;
    for (const host of ['debate.internal:4010', '10.0.0.7', '[::1]:1'])
      expect([host, (await ask(path, host))[0]]).toEqual([host, 200]);
    expect((await ask(path, 'other.internal'))[0]).toBe(403);
  });
});

describe('the event stream', () => {
  it('sends the full state immediately and after each change, also of the mode', async () => {
    const sim = await start({ users: [{ uid: 'u-1', first_name: 'F', last_name: 'L', contributions: 2 }] });
    const events = await openEvents(`${sim.url}/simulator/events`);
    expect(events.response.headers.has('access-control-allow-origin')).toBe(false);
    expect(events.response.headers.get('content-type')).toContain('text/event-stream');
    const mode = 'normal';
    const users = [{ id: 1, uid: 'u-1', name: 'F L', contributions: 2 }];
    expect(await events.next()).toEqual({ mode, signedIn: [], users });
    sim.debate.signIn('u-1');
    expect(await events.next()).toEqual({ mode, signedIn: ['u-1'], users });
    await logOut(sim, signedToken());
    expect(await events.next()).toEqual({ mode, signedIn: [], users });
    sim.users.anonymize('u-1');
    const anonymized = [{ id: 1, uid: null, name: null, contributions: 2 }];
    expect(await events.next()).toEqual({ mode, signedIn: [], users: anonymized });
    await setMode(sim.url, { mode: 'down' });
    expect(await events.next()).toMatchObject({ mode: 'down' });
    await events.close();
  });

  it.each([
    ['http://127.0.0.1:3000', true],
    ['https://localhost', true],
    ['http://[::1]:3000', true],
    ['http://evil.example', false],
    ['http://localhost.evil.example', false],
    ['null', false],
  ])('may be read by a page of %s: %s', async (origin, isAllowed) => {
    const sim = await start();
    const sent = request(`${sim.url}/simulator/events`, { headers: { origin } });
    const [response] = (await once(sent.end(), 'response')) as [IncomingMessage];
    response.destroy();
    expect(response.headers['access-control-allow-origin']).toBe(isAllowed ? origin : undefined);
  });
});

describe('the demo sign-in', () => {
  it('registers an unknown user and signs in', async () => {
    const sim = await start();
    expect((await signIn(sim.url, { uid: 'u-1', first_name: 'F', email: 'e@example.org' })).status).toBe(200);
    expect(sim.users.get('u-1')).toMatchObject({ first_name: 'F', email: 'e@example.org' });
    const users = [{ id: 1, uid: 'u-1', name: 'F', contributions: 0 }];
    expect(await stateOf(sim.url)).toEqual({ mode: 'normal', signedIn: ['u-1'], users });
  });

  it('refuses the uid of a deleted user with 409', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    await deleteUser(sim, 'u-1');
    const response = await signIn(sim.url, { uid: 'u-1' });
    expect([response.status, await response.json()]).toMatchObject([409, { success: false }]);
    expect(sim.debate.signedIn()).toEqual([]);
  });

  it.each([
    ['no JSON', '{', 400],
    ['an array', [], 400],
    ['no uid', {}, 400],
    ['an empty uid', { uid: '' }, 400],
    ['a uid that is a number', { uid: 1 }, 400],
    ['a name that is a number', { uid: 'u-1', first_name: 1 }, 400],
    ['too much', { uid: 'u'.repeat(70_000) }, 413],
    ['what another site’s form could send', { uid: 'u-1' }, 415, 'text/plain'],
  ])('refuses %s', async (_what, body, status, type = 'application/json') => {
    const sim = await start();
    expect((await signIn(sim.url, body, type)).status).toBe(status);
    expect(sim.users.count).toBe(0);
  });
});

describe('the mode', () => {
  it('takes the service down, while the page goes on, and brings it back', async () => {
    const sim = await start();
    expect((await setMode(sim.url, { mode: 'down' })).status).toBe(200);
    await expect(logOut(sim, signedToken())).rejects.toThrow('fetch failed');
    expect((await fetch(sim.url)).status).toBe(200);
    expect(await stateOf(sim.url)).toMatchObject({ mode: 'down' });
    expect((await signIn(sim.url, { uid: 'u-1' })).status).toBe(503);
    await setMode(sim.url, { mode: 'normal' });
    expect((await logOut(sim, signedToken())).status).toBe(200);
  });

  it('refuses logouts and nothing else, before other faults and in place of the last mode', async () => {
    const sim = await start({ users: [{ uid: 'u-1' }] });
    sim.faults.add({ kind: 'latency', ms: 10 });
    await setMode(sim.url, { mode: 'slow' });
    await setMode(sim.url, { mode: 'refuse-logouts' });
    expect((await logOut(sim, signedToken())).status).toBe(403);
    expect((await deleteUser(sim, 'u-1')).status).toBe(200);
  });

  it('slows the service down', async () => {
    const sim = await start();
    await setMode(sim.url, { mode: 'slow' });
    const answer = logOut(sim, signedToken());
    await sim.received.waitFor('logout');
    await expect(Promise.race([answer, delay(200, 'not yet')])).resolves.toBe('not yet');
    await answer;
  });

  it.each([
    ['an unknown mode', { mode: 'toString' }, 'application/json', 400],
    ['a body without a mode', [], 'application/json', 400],
    ['what another site’s form could send', { mode: 'down' }, 'text/plain', 415],
  ])('refuses %s', async (_what, body, type, status) => {
    const sim = await start();
    expect((await setMode(sim.url, body, type)).status).toBe(status);
    expect((await logOut(sim, signedToken())).status).toBe(200);
  });
});
