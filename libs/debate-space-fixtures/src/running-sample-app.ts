import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { DebateSpaceSimulator } from 'debate-space-simulator';
import { createApp } from '../../../sample-app/src/create-app.js';
import { Browser } from '../../../sample-app/src/demo/browser.js';
import { DEMO_PASSWORD } from '../../../sample-app/src/login/demo-users.js';
import { startSimulatedService } from '../../../sample-app/src/simulated-service.js';
import { neverCloseIdle } from './never-close-idle.js';
import { keys } from './service.js';

/** The sample app in this process, with a debate space and a storage of its own. */
export class RunningSampleApp {
  private constructor(
    readonly app: NestExpressApplication,
    readonly url: string,
    readonly sim: DebateSpaceSimulator,
    private readonly folder: string,
  ) {}

  /**
   * As `npm start` does it.
   * @param members how many users the debate space has besides the demo ones
   */
  static async start(members = 0): Promise<RunningSampleApp> {
    return RunningSampleApp.#start(await startSimulatedService(0, members));
  }

  /** As `dist/main.js` does it: the simulator stands in for a real service, and the app does not know. */
  static async startForRealService(): Promise<RunningSampleApp> {
    const sim = await DebateSpaceSimulator.start({ ...keys, applicationName: 'sample-app' });
    delete process.env.SIMULATOR_URL;
    process.env.DEBATE_SPACE_API_KEY = keys.apiKey;
    process.env.DEBATE_SPACE_SECRET_KEY = keys.secretKey;
    process.env.DEBATE_SPACE_APPLICATION_NAME = 'sample-app';
    process.env.DEBATE_SPACE_AUTH_URL = sim.url;
    return RunningSampleApp.#start(sim);
  }

  static async #start(sim: DebateSpaceSimulator): Promise<RunningSampleApp> {
    const folder = await mkdtemp(join(tmpdir(), 'sample-app-'));
    process.env.DEBATE_SPACE_STORAGE = `sqlite:${join(folder, 'debate-space.db')}`;
    try {
      const app = await createApp({ logger: false, forceCloseConnections: true });
      await app.listen(0, '127.0.0.1');
      neverCloseIdle(app);
      return new RunningSampleApp(app, await app.getUrl(), sim, folder);
    } catch (error) {
      await sim.stop();
      await rm(folder, { recursive: true });
      throw error;
    }
  }

  browser(): Browser {
    return new Browser(this.url);
  }

  async loggedIn(uid: string, password = DEMO_PASSWORD): Promise<Browser> {
    const browser = this.browser();
    await browser.logIn(uid, password);
    return browser;
  }

  async close(): Promise<void> {
    await this.app.close();
    await this.sim.stop();
    await rm(this.folder, { recursive: true });
  }
}
