import type { FastifyEnding } from './ending.js';

/** The store is called without any session of a request. */
export const byStore: readonly FastifyEnding[] = [
  {
    name: 'store.destroy with no request',
    ends: true,
    act: async ({ request, session, store }) => {
      const { sessionId } = session;
      Object.assign(request, { session: null });
      await new Promise<void>((resolve) => {
        setImmediate(() => {
          store.destroy(sessionId, resolve);
        });
      });
    },
  },
  {
    name: 'store.clear',
    ends: true,
    fails: true,
    act: ({ request, store }) =>
      new Promise<void>((resolve) => {
        Object.assign(request, { session: null });
        store.clear?.(resolve);
      }),
  },
  {
    name: 'store.destroy by a job',
    ends: true,
    path: 'job',
    job: (store, sid) =>
      new Promise<void>((resolve) => {
        store.destroy(sid, resolve);
      }),
  },
];
