// What the checks of the packed packages have in common: an app in a folder of its own, the simulator as the shell starts it,
// and one logout, end to end, with the app, the simulator and the browser in processes of their own.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '#support/servers/free-port.js';
import { messageOf } from './caught.js';
import { packages, packInto, type Packed } from './packed.js';

/** One for each CPU of the smallest machine that runs this. */
const LANES = 2;
/** An app that takes longer hangs. */
const TIMEOUT_MS = 60_000;

/** Works with the packed packages in a folder that is gone afterwards. */
export async function withPacked(
  work: (folder: string, packed: readonly Packed[]) => Promise<void>,
  names = packages,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'debate-space-packed-'));
  try {
    await work(folder, await packInto(folder, names));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The folder of an app that has nothing but a manifest. */
export function newApp(folder: string, name: string, manifest: object = {}): string {
  const place = join(folder, name);
  mkdirSync(place);
  writeFileSync(join(place, 'package.json'), JSON.stringify({ name, private: true, ...manifest }));
  return place;
}

/** Runs tasks, two at a time. A task that fails leaves the others as they are. */
export async function inTurns(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const waiting = [...tasks];
  const failures: string[] = [];
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task !== undefined; task = waiting.shift())
      await task().catch((error: unknown) => failures.push(messageOf(error)));
  };
  await Promise.all(Array.from({ length: LANES }, work));
  for (const failure of failures) console.error(`✗ ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}

/** Starts the simulator that is installed in `place`, calls `use` with its address, and stops it. */
export async function withSimulator(
  place: string,
  env: NodeJS.ProcessEnv,
  use: (authUrl: string) => Promise<void>,
): Promise<void> {
  const bin = join(place, 'node_modules/.bin/debate-space-simulator');
  const simulator = spawn(bin, ['--port', '0'], { env: { ...process.env, ...env } });
  await once(simulator, 'spawn'); // rejects when there is no such program
  try {
    for await (const line of createInterface(simulator.stdout)) {
      const [, address] = /DEBATE_SPACE_AUTH_URL=(\S+)/.exec(line) ?? [];
      if (address === undefined) continue;
      await use(address);
      return;
    }
    throw new Error('the simulator did not start');
  } finally {
    await end(simulator);
  }
}

/** Starts `main` in `place` with this binary of Node.js, logs alice in and out there, and waits until she has left the debate space. */
export async function logOutOnce(
  node: string,
  place: string,
  main: string,
  authUrl: string,
  more: NodeJS.ProcessEnv = {},
): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ uid: 'alice' });
  await fetch(`${authUrl}/simulator/sign-in`, { method: 'POST', headers, body });
  if (!(await isSignedIn(authUrl))) throw new Error('the simulator has not signed alice in');

  const PORT = String(await freePort());
  const env = { ...process.env, ...more, PORT, DEBATE_SPACE_AUTH_URL: authUrl };
  const app = spawn(node, [main], { cwd: place, env });
  let printed = '';
  for (const stream of [app.stdout, app.stderr]) stream.on('data', (text) => (printed += String(text)));
  const url = `http://127.0.0.1:${PORT}`;
  try {
    const isAnswering = () =>
      fetch(url).then(
        () => true,
        () => false,
      );
    await until(isAnswering, app);
    const credentials = new URLSearchParams({ username: 'alice' });
    const login = await fetch(`${url}/login`, { method: 'POST', body: credentials });
    const [cookie = ''] = login.headers.getSetCookie().map((each) => each.replace(/;.*/s, ''));
    await fetch(`${url}/logout`, { method: 'POST', headers: { cookie } });
    await until(async () => !(await isSignedIn(authUrl)), app);
  } catch (error) {
    throw new Error(`${main} in ${place}: ${messageOf(error)}\n${printed}`, { cause: error });
  } finally {
    await end(app);
  }
}

async function isSignedIn(authUrl: string): Promise<boolean> {
  const state = (await (await fetch(`${authUrl}/simulator/state`)).json()) as { signedIn: string[] };
  return state.signedIn.includes('alice');
}

async function until(isSo: () => Promise<boolean>, app: ChildProcess): Promise<void> {
  const lastMoment = Date.now() + TIMEOUT_MS;
  while (!(await isSo())) {
    if (Date.now() > lastMoment) throw new Error(`waited a minute in vain: ${String(isSo)}`);
    if (app.exitCode !== null) throw new Error(`the app has ended with exit code ${app.exitCode}`);
    await wait(50);
  }
}

async function end(child: ChildProcess): Promise<void> {
  child.kill();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
