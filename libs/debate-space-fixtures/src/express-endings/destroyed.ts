import type { FallibleStore } from '../fallible-store.js';
import { called, destroySession } from '../session-jobs.js';
import type { ExpressEnding } from './ending.js';

/** A handler destroys the session. */
export const destroyed: readonly ExpressEnding[] = [
  { name: 'session.destroy with a callback', core: true, ends: true, act: destroySession },
  {
    name: 'session.destroy without a callback',
    ends: true,
    act: (request) => {
      request.session.destroy(undefined as never);
    },
  },
  {
    name: 'session.destroy, and then the handler throws',
    ends: true,
    act: async (request) => {
      await destroySession(request);
      throw new Error('after the end');
    },
  },
  {
    name: 'session.destroy twice',
    ends: true,
    act: async (request) => {
      const { session } = request;
      await destroySession(request);
      await called((done) => session.destroy(done));
    },
  },
  {
    name: 'a destroy that fails in the store',
    ends: false,
    act: (request, _, store) => {
      (store as FallibleStore).fail('destroy');
      return destroySession(request).catch(() => undefined);
    },
  },
];
