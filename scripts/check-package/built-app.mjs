// One logout, end to end: an app that its builder has built, a browser, and the simulator in processes of their own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { URLSearchParams } from 'node:url';

/** Starts `main` in `place` with this binary of Node.js, logs alice in and out there, and waits until she has left the debate space. */
export async function logOutOnce(node, place, main, authUrl) {
  await fetch(`${authUrl}/simulator/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uid: 'alice' }),
  });
  if (!(await isSignedIn(authUrl))) throw new Error('the simulator has not signed alice in');

  const PORT = String(await freePort());
  const env = { ...process.env, PORT, DEBATE_SPACE_AUTH_URL: authUrl };
  const app = spawn(node, [main], { cwd: place, env });
  let printed = '';
  for (const stream of [app.stdout, app.stderr]) stream.on('data', (text) => (printed += text));
  const url = `http://127.0.0.1:${PORT}`;
  try {
    await until(() => isAnswering(url), app);
    const login = await fetch(`${url}/login`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice' }),
    });
    const [cookie] = login.headers.getSetCookie().map((each) => each.split(';')[0]);
    await fetch(`${url}/logout`, { method: 'POST', headers: { cookie } });
    await until(async () => !(await isSignedIn(authUrl)), app);
  } catch (error) {
    throw new Error(`${main} in ${place}: ${error.message}\n${printed}`, { cause: error });
  } finally {
    app.kill();
    if (app.exitCode === null && app.signalCode === null) await once(app, 'exit');
  }
}

async function isSignedIn(authUrl) {
  const state = await (await fetch(`${authUrl}/simulator/state`)).text();
  return JSON.parse(state).signedIn.includes('alice');
}

async function isAnswering(url) {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

/** Asks again until it is so. An app that takes a minute hangs. */
async function until(isSo, app) {
  const lastMoment = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > lastMoment) throw new Error(`waited a minute in vain: ${isSo}`);
    if (app.exitCode !== null) throw new Error(`the app has ended with exit code ${app.exitCode}`);
    await wait(50);
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
