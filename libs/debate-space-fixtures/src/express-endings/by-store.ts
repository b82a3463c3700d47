import { setImmediate as nextTurn } from 'node:timers/promises';
import { called, jobs } from '../session-jobs.js';
import type { ExpressEnding } from './ending.js';

/** The store is called without any session of a request. */
export const byStore: readonly ExpressEnding[] = [
  {
    name: 'store.destroy with no request',
    ends: true,
    act: async (request, _, store) => {
      const { sessionID } = request;
      setImmediate(() => {
        store.destroy(sessionID);
      });
      await nextTurn();
      await nextTurn();
    },
  },
  { name: 'store.destroy by a job', core: true, ends: true, path: 'job', job: jobs.destroy },
  {
    name: 'the user is removed by a job',
    ends: true,
    path: 'job',
    stacks: ['express-session'],
    job: jobs.removeUser,
  },
  {
    name: 'store.clear by a job',
    core: true,
    ends: true,
    path: 'job',
    job: jobs.clear,
  },
  { name: 'store.clear', ends: true, act: (_, __, store) => called((done) => store.clear?.(done)) },
];
