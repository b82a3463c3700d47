import { once } from 'node:events';
import { Agent, request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Trial } from './trial.js';

const ANSWER_TIMEOUT_MS = 20_000;

export interface Load {
  readonly browsers: number;
  /** Between two users of a browser, on average, in milliseconds. */
  readonly pauseMs: number;
  /** Whether only the first app gets requests, and dies right after its answers to logouts and second logins. */
  readonly isDeadly?: boolean;
}

/** Browsers log in and out, each time as another user, until `signal` aborts. */
export async function browse(trial: Trial, load: Load, signal: AbortSignal): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  let users = 0;
  const browser = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(2 * load.pauseMs * Math.random());
      users += 1;
      await visit(`user-${users}`, trial, load, agent);
    }
  };
  await Promise.all(Array.from({ length: load.browsers }, browser));
  agent.destroy();
}

/** One user in eight stays logged in; one in eight logs in again, and stays. */
async function visit(uid: string, trial: Trial, { isDeadly }: Load, agent: Agent): Promise<void> {
  const { ledger } = trial;
  const account = ledger.account(uid);
  const anyApp = (): string | undefined => {
    const urls = trial.apps.slice(0, isDeadly ? 1 : undefined).flatMap((app) => app.url ?? []);
    return urls[trial.between(0, urls.length - 1)];
  };
  const newSession = (): OutgoingHttpHeaders => {
    const session = `${uid}-${account.sessions.length}`;
    account.sessions.push(session);
    return { 'x-user': uid, 'x-session': session };
  };
  const deadly = isDeadly && { 'x-die': 'yes' };

  const login = await post(agent, anyApp(), '/login', newSession());
  if (login?.body !== uid) return;
  const headers = { ...deadly, cookie: login.cookie };
  const [choice, url] = [Math.random(), anyApp()];
  if (choice < 1 / 8 || url === undefined) return;
  if (choice < 1 / 4) {
    account.isCutOff = true;
    const answer = await post(agent, url, '/login-again', { ...headers, ...newSession() });
    account.isCutOff = answer?.body !== uid;
    return;
  }
  const started = performance.now();
  account.askedAt = Date.now();
  const answer = await post(agent, url, '/logout', headers);
  if (answer?.body === uid) ledger.answer(account, performance.now() - started);
  else if (answer) ledger.refused += 1;
}

interface Answer {
  readonly body: string;
  readonly cookie: string | undefined;
}

/** @returns `undefined` when no whole answer came */
async function post(
  agent: Agent,
  url: string | undefined,
  path: string,
  headers: OutgoingHttpHeaders,
): Promise<Answer | undefined> {
  if (url === undefined) return undefined;
  const call = request(url + path, { method: 'POST', agent, headers, timeout: ANSWER_TIMEOUT_MS });
  call.on('timeout', () => call.destroy());
  try {
    const [response] = (await once(call.end(), 'response')) as [IncomingMessage];
    let body = '';
    for await (const chunk of response) body += String(chunk); // throws when the connection is cut
    return { body, cookie: response.headers['set-cookie']?.[0]?.split(';')[0] };
  } catch {
    return undefined;
  }
}
