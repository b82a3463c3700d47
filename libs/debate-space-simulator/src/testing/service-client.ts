import { afterEach } from '@jest/globals';
import { DebateSpaceSimulator } from '../debate-space-simulator.js';
import type { AccessTokenAnswer } from '../state/access-tokens.js';
import { DEMO_CREDENTIALS, type SimulatorOptions } from '../simulator-options.js';

/** Starts simulators that are stopped after each test of the file. */
export function simulators(): (options?: SimulatorOptions) => Promise<DebateSpaceSimulator> {
  const started: DebateSpaceSimulator[] = [];
  afterEach(async () => {
    await Promise.all(started.splice(0).map((sim) => sim.stop()));
  });
  return async (options) => {
    const sim = await DebateSpaceSimulator.start(options);
    started.push(sim);
    return sim;
  };
}

export const TOKEN_FIELDS = {
  grant_type: 'client_credentials',
  client_id: DEMO_CREDENTIALS.apiKey,
  client_secret: DEMO_CREDENTIALS.secretKey,
  scope: 'authentication',
};

/** POSTs a form, as sections 4.1 and 4.5 have it. */
export function postForm(
  url: string,
  fields: Record<string, string> | [string, string][],
): Promise<Response> {
  return fetch(url, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' });
}

export async function accessToken(
  sim: DebateSpaceSimulator,
  scope = 'authentication',
): Promise<AccessTokenAnswer> {
  const response = await postForm(`${sim.url}/oauth/token`, { ...TOKEN_FIELDS, scope });
  return (await response.json()) as AccessTokenAnswer;
}

export function logOut(sim: DebateSpaceSimulator, logout_token: string): Promise<Response> {
  return postForm(`${sim.url}/auth/logout/${sim.applicationName}`, { logout_token });
}

/** A request under `{base_url}`, with the headers of section 4. A header set to '' is left out. */
export function callApi(
  sim: DebateSpaceSimulator,
  method: string,
  path: string,
  token?: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  const all = {
    'content-type': 'application/json',
    authorization: token === undefined ? '' : `Bearer ${token}`,
    ...headers,
  };
  const sent = Object.entries(all).filter(([, value]) => value !== '');
  return fetch(sim.baseUrl + path, { method, headers: Object.fromEntries(sent) });
}

/** DELETE of a user with a fresh token of the right scope. */
export async function deleteUser(sim: DebateSpaceSimulator, uid: string): Promise<Response> {
  const { access_token } = await accessToken(sim);
  return callApi(sim, 'DELETE', `/users/${encodeURIComponent(uid)}`, access_token);
}
