import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Setting, Trial } from './trial.js';

const ANSWER_TIMEOUT_MS = 20_000;

export interface Load extends Pick<Setting, 'isDeadly'> {
  readonly browsers: number;
  /** Between two users of a browser, on average, in milliseconds. */
  readonly pauseMs: number;
}

/** Browsers log in and out, each time as another user, until `signal` aborts. */
export async function browse(trial: Trial, load: Load, signal: AbortSignal): Promise<void> {
  let users = 0;
  const browser = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(2 * load.pauseMs * Math.random());
      users += 1;
      await visit(`user-${users}`, trial, load);
    }
  };
  await Promise.all(Array.from({ length: load.browsers }, browser));
}

/** One user in eight stays logged in; one in eight logs in again, and stays. */
async function visit(uid: string, trial: Trial, { isDeadly }: Load): Promise<void> {
  const { ledger } = trial;
  const account = ledger.account(uid);
  const anyApp = (): string | undefined => {
    const urls = trial.apps.slice(0, isDeadly ? 1 : undefined).flatMap((app) => app.url ?? []);
    return urls[trial.between(0, urls.length - 1)];
  };
  const newSession = () => {
    const session = `${uid}-${account.sessions.length}`;
    account.sessions.push(session);
    return { 'x-user': uid, 'x-session': session };
  };
  const login = await post(`${String(anyApp())}/login`, newSession());
  const [choice, url] = [Math.random(), anyApp()];
  if (login?.body !== uid || url === undefined || choice < 1 / 8) return;

  const headers = { cookie: login.cookie, ...(isDeadly && { 'x-die': 'yes' }) };
  if (choice < 1 / 4) {
    account.isCutOff = true;
    const answer = await post(`${url}/login-again`, { ...headers, ...newSession() });
    account.isCutOff = answer?.body !== uid;
  } else {
    const started = performance.now();
    account.requestedAt = Date.now();
    const answer = await post(`${url}/logout`, headers);
    if (answer?.body === uid) ledger.answer(account, performance.now() - started);
    else if (answer) ledger.refused += 1;
  }
}

/** @returns `undefined` when no whole answer came */
async function post(
  url: string,
  headers: Record<string, string>,
): Promise<{ body: string; cookie: string } | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    const response = await fetch(url, { method: 'POST', headers, signal });
    const [cookie = ''] = response.headers.getSetCookie();
    return { body: await response.text(), cookie: cookie.replace(/;.*/, '') };
  } catch {
    return undefined;
  }
}
