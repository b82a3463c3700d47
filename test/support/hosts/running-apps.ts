import type { INestApplication, INestApplicationContext } from '@nestjs/common';
import session from 'express-session';
import { neverCloseIdle } from '../service/never-close-idle.js';

/** The apps of a test, which closes them. */
export class RunningApps {
  readonly #apps: INestApplicationContext[] = [];

  /** @returns where it listens */
  async listen(creating: Promise<INestApplication>): Promise<string> {
    const app = await this.add(creating);
    await app.listen(0, '127.0.0.1');
    neverCloseIdle(app);
    return app.getUrl();
  }

  async add<App extends INestApplicationContext>(creating: Promise<App>): Promise<App> {
    const app = await creating;
    this.#apps.push(app);
    return app;
  }

  /** Has every verdict fall, and delivers what there is. */
  async close(): Promise<void> {
    for (const app of this.#apps.splice(0)) await app.close();
  }
}

/** A store whose rows outlive it: each process has its own handle. */
export function storeWith(rows: object): session.MemoryStore {
  return Object.assign(new session.MemoryStore(), { sessions: rows });
}

/** What may be asked of a store whose app has just started. */
export const starts = [
  { first: 'a login', store: 'found', given: false, restart: false },
  { first: 'a login', store: 'given', given: true, restart: false },
  { first: 'the logout', store: 'found', given: false, restart: true },
  { first: 'the logout', store: 'given', given: true, restart: true },
] as const;
