import type { FastifyEnding } from './ending.js';

/** The session stays in the store, and its browser no longer has it. */
export const leftBehind: readonly FastifyEnding[] = [
  {
    name: 'request.session = null',
    ends: false,
    act: ({ request }) => {
      Object.assign(request, { session: null });
    },
  },
  {
    name: 'the cookie is cleared, and the session left behind',
    ends: true,
    act: ({ request, reply }) => {
      Object.assign(request, { session: null });
      void reply.clearCookie('sessionId', { path: '/' });
    },
  },
  {
    name: 'a cookie of something else is cleared',
    ends: false,
    act: ({ reply }) => {
      void reply.clearCookie('theme');
    },
  },
];
