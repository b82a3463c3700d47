import { describe, expect, it } from '@jest/globals';
import { openEvents } from '../testing/event-reader.js';
import { deleteUser, logOut, simulators } from '../testing/service-client.js';
import { signedToken } from '../testing/signed-token.js';

const start = simulators();

function signIn(url: string, body: unknown, type = 'application/json'): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${url}/simulator/sign-in`, { method: 'POST', headers: { 'content-type': type }, body: text });
}

describe('the page', () => {
  it('is HTML that runs its own script alone and escapes what it is given', async () => {
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
  });

  it('is not on record', async () => {
    const sim = await start();
    await fetch(sim.url);
    await fetch(`${sim.url}/simulator/state`);
    expect(sim.received.count).toBe(0);
  });
});

describe('the event stream', () => {
  it('sends the full state immediately and after each change, to any origin', async () => {
    const sim = await start({ users: [{ uid: 'u-1', first_name: 'F', last_name: 'L', contributions: 2 }] });
    const events = await openEvents(`${sim.url}/simulator/events`);
    expect(events.response.headers.get('access-control-allow-origin')).toBe('*');
    expect(events.response.headers.get('content-type')).toContain('text/event-stream');
    const users = [{ uid: 'u-1', name: 'F L', contributions: 2 }];
    expect(await events.next()).toEqual({ signedIn: [], users });
    sim.debate.signIn('u-1');
    expect(await events.next()).toEqual({ signedIn: ['u-1'], users });
    await logOut(sim, signedToken());
    expect(await events.next()).toEqual({ signedIn: [], users });
    sim.users.anonymize('u-1');
    expect(await events.next()).toEqual({
      signedIn: [],
      users: [{ uid: null, name: null, contributions: 2 }],
    });
    await events.close();
  });
});

describe('the demo sign-in', () => {
  it('registers an unknown user and signs in', async () => {
    const sim = await start();
    expect((await signIn(sim.url, { uid: 'u-1', first_name: 'F', email: 'e@example.org' })).status).toBe(200);
    expect(sim.users.get('u-1')).toMatchObject({ first_name: 'F', email: 'e@example.org' });
    const state = await fetch(`${sim.url}/simulator/state`);
    expect(await state.json()).toEqual({
      signedIn: ['u-1'],
      users: [{ uid: 'u-1', name: 'F', contributions: 0 }],
    });
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
  ])('refuses %s', async (_what, body, status) => {
    const sim = await start();
    expect((await signIn(sim.url, body)).status).toBe(status);
    expect(sim.users.count).toBe(0);
  });

  it('refuses what another site’s form could send', async () => {
    const sim = await start();
    expect((await signIn(sim.url, { uid: 'u-1' }, 'text/plain')).status).toBe(415);
  });
});
