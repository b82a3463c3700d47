import { afterEach } from '@jest/globals';
import { DebateSpaceSimulator } from '../debate-space-simulator.js';
import type { AccessTokenAnswer } from '../operations/obtain-token.js';
import { DEMO_CREDENTIALS, type SimulatorOptions } from '../simulator-options.js';
import { createHmac, randomUUID } from 'node:crypto';
import { LOGOUT_EVENT } from '../logout-token.js';
import type { DebateState } from '../demo/debate-state.js';

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

type Members = Record<string, unknown>;

const digests: Partial<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

export const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Seconds since the epoch, a number of seconds from now. */
export const secondsFromNow = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds;

/** The claims of a valid logout token for `u-1`; a member set to undefined is left out. */
export function logoutClaims(changes: Members = {}): Members {
  return {
    iss: DEMO_CREDENTIALS.applicationName,
    aud: DEMO_CREDENTIALS.apiKey,
    sub: 'u-1',
    jti: randomUUID(),
    iat: secondsFromNow(0),
    exp: secondsFromNow(120),
    events: { [LOGOUT_EVENT]: {} },
    ...changes,
  };
}

/** A JWS over any claims, signed by hand so that no library smooths out what a test breaks. */
export function signedToken(
  claims: unknown = logoutClaims(),
  header: Members = {},
  key: string | Buffer = DEMO_CREDENTIALS.secretKey,
): string {
  const whole = { alg: 'HS256', typ: 'logout+jwt', ...header };
  const input = `${encoded(whole)}.${encoded(claims)}`;
  const digest = digests[whole.alg] ?? 'sha256';
  return `${input}.${createHmac(digest, key).update(input).digest('base64url')}`;
}

/** Reads server-sent events one by one. `next` resolves with undefined at the end of the stream. */
export async function openEvents(url: string): Promise<{
  response: Response;
  next: () => Promise<DebateState | undefined>;
  close: () => Promise<void>;
}> {
  const response = await fetch(url);
  if (response.body === null) throw new Error('The event stream has no body.');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffered = '';
  const next = async (): Promise<DebateState | undefined> => {
    for (;;) {
      const end = buffered.indexOf('\n\n');
      if (end >= 0) {
        const message = buffered.slice(0, end);
        buffered = buffered.slice(end + 2);
        return JSON.parse(message.slice(message.indexOf('data: ') + 6)) as DebateState;
      }
      const { value, done } = await reader.read();
      if (done) return undefined;
      buffered += value;
    }
  };
  return { response, next, close: () => reader.cancel() };
}
