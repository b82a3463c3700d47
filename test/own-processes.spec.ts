import { afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Browser } from '../sample-app/src/demo/browser.js';
import { DEMO_PASSWORD } from '../sample-app/src/login/demo-users.js';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { freePort } from './support/free-port.js';
import { programOf } from './support/program.js';
import { keys } from './support/service.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const main = join(root, 'sample-app/dist/main.js');
const run = promisify(execFile);

let folder: string;
let service: DebateSpaceSimulator;
let port: number;
let app: ChildProcess | undefined;

beforeAll(async () => {
  await run('npm', ['run', 'build'], { cwd: root }); // they use the packages by name
}, 180_000);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'own-process-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe('the sample app', () => {
  beforeEach(async () => {
    port = await freePort();
    service = await DebateSpaceSimulator.start({ ...keys, applicationName: 'sample-app', users: [{ uid: 'ada' }] }); // prettier-ignore
  });
  afterEach(async () => {
    await kill();
    await service.stop();
  });
  async function start(): Promise<Browser> {
    const env = {
      PATH: process.env.PATH,
      DEBATE_SPACE_API_KEY: keys.apiKey,
      DEBATE_SPACE_SECRET_KEY: keys.secretKey,
      DEBATE_SPACE_APPLICATION_NAME: 'sample-app',
      DEBATE_SPACE_AUTH_URL: service.url,
      OUTBOX_PATH: folder,
      PORT: String(port),
    };
    app = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let printed = '';
    await new Promise<void>((resolve) => {
      app?.stdout?.on('data', (text) => {
        printed += String(text);
        if (printed.includes('successfully started')) resolve();
      });
    });
    return new Browser(`http://127.0.0.1:${port}`);
  }

  async function kill(): Promise<void> {
    if (!app) return;
    const gone = once(app, 'exit');
    app.kill('SIGKILL');
    await gone;
    app = undefined;
  }

  it('delivers after a restart what it was killed with, while the service was away', async () => {
    const ada = await start();
    await ada.logIn('ada', DEMO_PASSWORD);
    await service.goDown();
    const response = await ada.submit('/logout');
    expect(response.status).toBe(303);
    await kill();

    await service.comeBack();
    await start();
    await service.received.waitFor('logout', { timeoutMs: 60_000 });
    expect(service.received.logouts).toEqual(['ada']);
  }, 120_000);
});

programOf('prlimit', 'util-linux').describe('the lmdb outbox on a full disk', () => {
  it('takes nothing new, delivers what it has, and goes on when there is room again', async () => {
    const { stdout } = await run(process.execPath, [join(root, 'test/support/full-disk.mjs'), folder], { cwd: root }); // prettier-ignore
    const full = { name: 'OutboxError', message: expect.stringContaining('the disk is full') };
    expect(JSON.parse(stdout)).toEqual({
      refused: full,
      unnoted: full,
      isKept: true,
      isDelivered: true,
      later: 200,
      noted: 1000,
    });
  }, 60_000);
});
