import type { Request } from 'express';

declare module 'express-session' {
  interface SessionData {
    /** A sentence for the next page. */
    notice?: string;
  }
}

/** Hands out what the last request left to say, once. */
export function takeNotice({ session }: Request): string | undefined {
  const { notice } = session;
  delete session.notice;
  return notice;
}
