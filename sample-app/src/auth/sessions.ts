import { promisify } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import session from 'express-session';
import createMemoryStore from 'memorystore';

export interface Notice {
  readonly text: string;
  readonly isBad?: boolean;
}

declare module 'express-session' {
  interface SessionData {
    /** Passport keeps here what `serializeUser` returns. */
    passport?: { user?: string };
    /** A sentence for the next page. */
    notice?: Notice;
  }
}

const MemoryStore = createMemoryStore(session);
const CHECK_PERIOD_MS = 60_000;

/** Keeps sessions in memory until the process ends. A real app has a store that lasts. */
@Injectable()
export class Sessions extends MemoryStore {
  constructor() {
    super({ checkPeriod: CHECK_PERIOD_MS });
  }

  async has(sid: string): Promise<boolean> {
    return Boolean(await promisify(this.get.bind(this))(sid));
  }

  /** Logs the user out of all browsers. */
  async endAllOf(uid: string): Promise<void> {
    const sessions = (await promisify(this.all.bind(this))()) ?? {};
    for (const [sid, { passport }] of Object.entries(sessions))
      if (passport?.user === uid) await promisify(this.destroy.bind(this))(sid);
  }
}

/**
 * Logs the user out as any app with passport does. No call to the debate space is necessary: nestjs-debate-space sees that
 * the session ends, and logs the user out there.
 */
export async function endSession(request: Request): Promise<void> {
  await promisify(request.logout.bind(request) as (done: (error?: Error) => void) => void)();
}

/** The sentence that the last request left for this page. */
export function takeNotice({ session }: Request): Notice | undefined {
  const { notice } = session;
  delete session.notice;
  return notice;
}
