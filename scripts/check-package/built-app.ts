// One logout, end to end: an app that its builder has built, a browser, and the simulator in processes of their own.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { URLSearchParams } from 'node:url';
import { freePort } from '#support/servers/free-port.js';
import { messageOf } from '../caught.js';

/** Starts `main` in `place` with this binary of Node.js, logs alice in and out there, and waits until she has left the debate space. */
export async function logOutOnce(
  node: string,
  place: string,
  main: string,
  authUrl: string,
  more: NodeJS.ProcessEnv = {},
): Promise<void> {
  await fetch(`${authUrl}/simulator/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uid: 'alice' }),
  });
  if (!(await isSignedIn(authUrl))) throw new Error('the simulator has not signed alice in');

  const PORT = String(await freePort());
  const env = { ...process.env, ...more, PORT, DEBATE_SPACE_AUTH_URL: authUrl };
  const app = spawn(node, [main], { cwd: place, env });
  let printed = '';
  for (const stream of [app.stdout, app.stderr]) stream.on('data', (text) => (printed += String(text)));
  const url = `http://127.0.0.1:${PORT}`;
  try {
    await until(() => isAnswering(url), app);
    const login = await fetch(`${url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice' }),
    });
    const [cookie = ''] = login.headers.getSetCookie().map((each) => each.replace(/;.*/s, ''));
    await fetch(`${url}/logout`, { method: 'POST', headers: { cookie } });
    await until(async () => !(await isSignedIn(authUrl)), app);
  } catch (error) {
    throw new Error(`${main} in ${place}: ${messageOf(error)}\n${printed}`, { cause: error });
  } finally {
    app.kill();
    if (app.exitCode === null && app.signalCode === null) await once(app, 'exit');
  }
}

async function isSignedIn(authUrl: string): Promise<boolean> {
  const state = await (await fetch(`${authUrl}/simulator/state`)).text();
  return (JSON.parse(state) as { readonly signedIn: readonly string[] }).signedIn.includes('alice');
}

async function isAnswering(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

/** Asks again until it is so. An app that takes a minute hangs. */
async function until(isSo: () => Promise<boolean>, app: ChildProcess): Promise<void> {
  const lastMoment = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > lastMoment) throw new Error(`waited a minute in vain: ${String(isSo)}`);
    if (app.exitCode !== null) throw new Error(`the app has ended with exit code ${app.exitCode}`);
    await wait(50);
  }
}
