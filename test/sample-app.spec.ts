import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import {
  AbortedError,
  AuthenticationError,
  InvalidArgumentError,
  InvalidUidError,
  NetworkError,
  PermissionError,
  RateLimitedError,
  RefusedError,
  TimeoutError,
  UnavailableError,
  UnexpectedResponseError,
  UserNotFoundError,
} from 'nestjs-debate-space';
import { createApp } from '../sample-app/src/create-app.js';
import { Browser } from '../sample-app/src/demo/browser.js';
import { DEMO_PASSWORD } from '../sample-app/src/login/demo-users.js';
import { debateSpaceProblem } from '../sample-app/src/problems/debate-space-problem.js';
import { startSimulatedService } from '../sample-app/src/simulated-service.js';

let sim: DebateSpaceSimulator;
let app: NestExpressApplication;
let outbox: string;

beforeEach(async () => {
  sim = await startSimulatedService(0);
  outbox = await mkdtemp(join(tmpdir(), 'sample-app-'));
  process.env.OUTBOX_PATH = outbox;
  app = await createApp({ logger: false, abortOnError: false, forceCloseConnections: true });
  await app.listen(0, '127.0.0.1');
});

afterEach(async () => {
  await app.close();
  await sim.stop();
  await rm(outbox, { recursive: true });
});

async function visitor(): Promise<Browser> {
  return new Browser(await app.getUrl());
}

async function loggedIn(uid: string): Promise<Browser> {
  const browser = await visitor();
  await browser.logIn(uid, DEMO_PASSWORD);
  return browser;
}

async function json(response: Response): Promise<unknown> {
  return response.json();
}

describe('logging in and out', () => {
  it('signs the user in to the debate, and out of it with the logout here', async () => {
    const ada = await loggedIn('ada');
    expect(await ada.open('/')).toContain('You are logged in as Ada');
    expect(sim.debate.isSignedIn('ada')).toBe(true);

    const response = await ada.submit('/logout');
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login']);
    expect(await ada.open('/')).toContain('You are logged out.');
    await sim.received.waitFor('logout');
    expect(sim.received.logouts).toEqual(['ada']);
    expect(sim.debate.isSignedIn('ada')).toBe(false);
  });

  it('leaves the debate alone when the same user logs in again', async () => {
    const ada = await loggedIn('ada');
    const first = ada.cookie;
    await ada.logIn('ada', DEMO_PASSWORD);
    expect(ada.cookie).not.toBe(first);
    await app.close(); // with every verdict fallen and everything sent
    expect(sim.received.logouts).toEqual([]);
    expect(sim.debate.isSignedIn('ada')).toBe(true);
  });

  it('brings the form back after a wrong password', async () => {
    const ada = await visitor();
    const response = await ada.logIn('ada', 'wrong');
    expect(response.status).toBe(401);
    expect(await response.text()).toContain('This user name and password do not go together.');
    expect(sim.debate.signedIn()).toEqual([]);
  });

  it('works while the debate space is down, and says what does not', async () => {
    await sim.goDown();
    const ada = await loggedIn('ada');
    expect(await ada.open('/')).toContain('not signed in to the debate space: it does not answer.');
  });
});

describe('who may do what', () => {
  it.each(['/logout', '/me/anonymize', '/me/delete'])(
    'refuses POST %s without the token of the session, and tells the service nothing',
    async (path) => {
      const ada = await loggedIn('ada');
      const response = await ada.submitWithoutToken(path);
      expect(response.status).toBe(403);
      expect(await response.text()).toContain('This form is no longer valid.');
      expect(await ada.open('/')).toContain('You are logged in as Ada');
      expect(sim.received.count).toBe(0);
    },
  );

  it('leads whoever is not logged in to the login', async () => {
    const response = await (await visitor()).request('/');
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login']);
  });

  it('refuses an erasure to whoever is not logged in', async () => {
    expect((await (await visitor()).submit('/me/delete')).status).toBe(401);
    expect(sim.received.count).toBe(0);
  });

  it('refuses programs with JSON', async () => {
    const response = await (await visitor()).request('/admin/users', { headers: { Accept: '*/*' } });
    expect(response.headers.get('content-type')).toContain('application/problem+json');
    expect(await json(response)).toEqual({
      title: 'Unauthorized',
      status: 401,
      detail: 'Please log in first.',
    });
  });

  it('refuses the user list to members', async () => {
    expect((await (await loggedIn('ada')).request('/admin/users')).status).toBe(403);
    expect(sim.received.count).toBe(0);
  });
});

describe('the user list', () => {
  it('comes page by page to administrators', async () => {
    const admin = await loggedIn('admin');
    const response = await admin.request('/admin/users?page=2&per_page=3');
    expect(await json(response)).toMatchObject({
      users: [{ uid: 'admin' }],
      page: 2,
      perPage: 3,
      total: 4,
      totalPages: 2,
    });
  });

  it.each(['page=0', 'page=x', 'page=1.5', 'per_page=', 'per_page=101'])('refuses ?%s', async (query) => {
    const response = await (await loggedIn('admin')).request(`/admin/users?${query}`);
    expect(response.status).toBe(400);
    expect(sim.received.count).toBe(0);
  });
});

describe('erasure', () => {
  it('anonymises and keeps the contributions', async () => {
    const ada = await loggedIn('ada');
    const contributions = sim.users.get('ada')?.contributions;
    const response = await ada.submit('/me/anonymize');
    expect([response.status, response.headers.get('location')]).toEqual([303, '/login']);
    expect(sim.users.has('ada')).toBe(false);
    expect(sim.users.all()[0]).toMatchObject({ uid: null, first_name: null, email: null, contributions });
    expect(await ada.open('/')).toContain('Your contributions stay there without a name.');
  });

  it('deletes with all contributions, and for ever', async () => {
    const ada = await loggedIn('ada');
    await ada.submit('/me/delete');
    expect(sim.users.wasDeleted('ada')).toBe(true);
    expect(await ada.open('/')).toContain('Nobody is logged in');
    await ada.logIn('ada', DEMO_PASSWORD);
    expect(await ada.open('/')).toContain('not signed in to the debate space: the user was deleted there.');
  });

  it('answers 503 in an outage, says that the outcome is unknown, and keeps the session', async () => {
    const headers = { 'Retry-After': '120' };
    sim.faults.add({ operation: 'anonymize', kind: 'status', status: 503, headers, times: 1 });
    const ada = await loggedIn('ada');
    const response = await ada.submit('/me/anonymize');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '120']);
    expect(await response.text()).toContain('Whether your data was erased is not known.');
    expect(await ada.open('/')).toContain('You are logged in as Ada');
    expect((await ada.submit('/me/anonymize')).status).toBe(303);
  });

  it('answers 503 when the service is busy, and says that nothing was erased', async () => {
    const headers = { 'Retry-After': '90' };
    sim.faults.add({ operation: 'delete', kind: 'status', status: 429, headers });
    const response = await (await loggedIn('ada')).submit('/me/delete');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '90']);
    expect(await response.text()).toContain('Nothing was erased.');
  });

  it('answers 404 for a user whom the service does not know', async () => {
    const ada = await loggedIn('ada');
    sim.users.delete('ada');
    const response = await ada.submit('/me/anonymize');
    expect(response.status).toBe(404);
    expect(await response.text()).toContain('The debate space does not know you.');
  });
});

describe('the answer to an error of the library', () => {
  const secret = 'internals';
  const details = { operation: 'deleteUser', outcome: 'refused', retryable: false, attempts: 1 } as const;

  it.each([
    [UserNotFoundError, 404],
    [InvalidUidError, 400],
    [InvalidArgumentError, 400],
    [RateLimitedError, 503],
    [AuthenticationError, 502],
    [PermissionError, 502],
    [RefusedError, 502],
    [UnexpectedResponseError, 502],
    [UnavailableError, 503],
    [NetworkError, 503],
    [TimeoutError, 504],
    [AbortedError, 503],
  ])('is for %p the status %d, without its message', (Kind, status) => {
    const problem = debateSpaceProblem(new Kind(secret, details));
    expect(problem.status).toBe(status);
    expect(JSON.stringify(problem)).not.toContain(secret);
  });

  it.each([
    ['not-sent', 'not-done'],
    ['refused', 'not-done'],
    ['unknown', 'unknown'],
  ] as const)('tells an erasure with the outcome %s as %s', (outcome, erasure) => {
    expect(debateSpaceProblem(new NetworkError(secret, { ...details, outcome })).erasure).toBe(erasure);
  });

  it('tells no erasure where there was none', () => {
    const error = new NetworkError(secret, { ...details, operation: 'listUsers' });
    expect(debateSpaceProblem(error)).not.toHaveProperty('erasure', expect.anything());
  });

  it('names a wait in whole seconds, a minute when the service named none for its limit', () => {
    const waiting = new UnavailableError(secret, { ...details, retryAfterMs: 1_200 });
    expect(debateSpaceProblem(waiting).retryAfterSeconds).toBe(2);
    expect(debateSpaceProblem(new RateLimitedError(secret, details)).retryAfterSeconds).toBe(60);
    expect(debateSpaceProblem(new UnavailableError(secret, details)).retryAfterSeconds).toBeUndefined();
  });
});
