import type { Request } from 'express';
import type { SessionData, Store } from 'express-session';

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
  destroy: (store: Store, sid: string): Promise<void> =>
    called((done) => {
      store.destroy(sid, done);
    }),
  clear: (store: Store): Promise<void> => called((done) => store.clear?.(done)),
  removeUser: async (store: Store, sid: string): Promise<void> => {
    const session = await loaded(store, sid);
    delete session.user;
    await called((done) => {
      store.set(sid, session, done);
    });
  },
};

function loaded(store: Store, sid: string): Promise<SessionData> {
  return new Promise((resolve, reject) => {
    store.get(sid, (error: unknown, data) => {
      if (data) resolve(data);
      else reject(new Error('the store has no such session', { cause: error }));
    });
  });
}
