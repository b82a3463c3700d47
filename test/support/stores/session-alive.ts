import type { SessionData } from 'express-session';

/** The session, unless it has run out. */
export function alive(session: SessionData): SessionData | undefined {
  const { expires } = session.cookie as { expires?: Date | string | null };
  return expires && new Date(expires).getTime() <= Date.now() ? undefined : session;
}
