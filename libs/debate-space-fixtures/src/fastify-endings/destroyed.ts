import { destroy, type FastifyEnding } from './ending.js';

/** A handler destroys the session. */
export const destroyed: readonly FastifyEnding[] = [
  { name: 'session.destroy', ends: true, act: destroy },
  {
    name: 'session.destroy with a callback',
    ends: true,
    act: ({ session }) =>
      new Promise((resolve) => {
        session.destroy(resolve);
      }),
  },
  {
    name: 'session.destroy, and then the handler throws',
    ends: true,
    act: async (context) => {
      await destroy(context);
      throw new Error('after the end');
    },
  },
  {
    name: 'session.destroy twice',
    ends: true,
    act: async ({ session }) => {
      await session.destroy();
      await session.destroy();
    },
  },
  {
    name: 'a destroy that fails in the store',
    ends: false,
    fails: true,
    act: ({ session, store }) => {
      store.fail?.('destroy', 1);
      return session.destroy().catch(() => undefined);
    },
  },
];
