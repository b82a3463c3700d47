import type { Request } from 'express';
import type { SessionData, Store } from 'express-session';

/** A store as handlers, jobs and tests call it. */
export interface HandledStore {
  /** Has the next calls fail; of the store that can. */
  fail?(operation: 'get' | 'set' | 'destroy', times?: number): void;
  get(sid: string, callback: (error: unknown, data?: SessionData | null) => void): unknown;
  set(sid: string, data: SessionData, callback?: (error?: unknown) => void): unknown;
  destroy(sid: string, callback?: (error?: unknown) => void): unknown;
  clear?(callback?: (error?: unknown) => void): unknown;
}

/** A call of a store that says by a callback how it ended. */
export const called = (work: (callback: (error?: unknown) => void) => void): Promise<void> =>
  new Promise((resolve, reject) => {
    work((error) => {
      if (error) reject(new Error('the callback got an error', { cause: error }));
      else resolve();
    });
  });

/** What a handler does to log its user out. */
export const destroySession = ({ session }: Request): Promise<void> =>
  called((done) => session.destroy(done));

/** The id of the only session that a store has. */
export const onlySid = (store: Store): Promise<string> =>
  new Promise((resolve) => {
    store.all?.((_: unknown, all) => {
      resolve(Object.keys(all ?? {}).join());
    });
  });

/** What an administrator or a job does to a session, with the store alone. */
export const jobs = {
  destroy: (store: HandledStore, sid: string): Promise<void> =>
    called((done) => {
      store.destroy(sid, done);
    }),
  clear: (store: HandledStore): Promise<void> => called((done) => store.clear?.(done)),
  removeUser: (store: HandledStore, sid: string): Promise<void> => withUser(store, sid, undefined),
  replaceUser: (store: HandledStore, sid: string, uid: string): Promise<void> =>
    withUser(store, sid, { uid }),
};

async function withUser(store: HandledStore, sid: string, user: SessionData['user']): Promise<void> {
  const session = { ...(await loaded(store, sid)), user };
  if (!user) delete session.user;
  await called((done) => {
    store.set(sid, session, done);
  });
}

function loaded(store: HandledStore, sid: string): Promise<SessionData> {
  return new Promise((resolve, reject) => {
    store.get(sid, (error: unknown, data) => {
      if (data) resolve(data);
      else reject(new Error('the store has no such session', { cause: error }));
    });
  });
}
