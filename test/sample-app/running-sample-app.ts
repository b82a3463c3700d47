import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { DebateSpaceSimulator } from 'debate-space-simulator';
import { neverCloseIdle } from '#support/service/never-close-idle.js';
import { startSimulator } from '../../sample-app/src/simulator.js';

/** The sample app in this process, with a simulator and a storage of its own, as `npm start` runs it. */
export interface RunningSampleApp {
  readonly app: NestExpressApplication;
  readonly url: string;
  readonly sim: DebateSpaceSimulator;
  readonly close: () => Promise<void>;
}

/** One per test file, because @nestjs/config reads the environment when the module of the app is loaded. */
export async function startSampleApp(members: number): Promise<RunningSampleApp> {
  const folder = await mkdtemp(join(tmpdir(), 'sample-app-'));
  process.env.STORAGE_PATH = join(folder, 'debate-space.db');
  const sim = await startSimulator(0, members);
  const { createApp } = await import('../../sample-app/src/create-app.js');
  const app = await createApp({ logger: false });
  await app.listen(0, '127.0.0.1');
  neverCloseIdle(app);
  const close = async (): Promise<void> => {
    await app.close();
    await sim.stop();
    await rm(folder, { recursive: true });
  };
  return { app, url: await app.getUrl(), sim, close };
}
