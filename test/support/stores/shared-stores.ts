import session from 'express-session';

/** Store objects of several instances of one app, on the same sessions. */
export function sharedStores(count: number): session.MemoryStore[] {
  const sessions: Record<string, string> = {};
  return Array.from({ length: count }, () => Object.assign(new session.MemoryStore(), { sessions }));
}
