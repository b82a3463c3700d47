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
    name: 'the cookie is cleared, and another one names the session',
    ends: true,
    act: ({ request, session, reply }) => {
      Object.assign(request, { session: null });
      void reply
        .setCookie('last_session', session.sessionId, { path: '/' })
        .clearCookie('sessionId', { path: '/' });
    },
  },
  {
    name: 'the cookie is cleared by the head of a hijacked reply',
    ends: true,
    act: ({ reply }) => {
      reply.hijack();
      reply.raw.writeHead(200, { 'Set-Cookie': 'sessionId=; Max-Age=0; Path=/' }).end('done');
    },
  },
  {
    name: 'the cookie is cleared, and a hijacked reply does not say so',
    ends: false,
    act: ({ reply }) => {
      void reply.clearCookie('sessionId', { path: '/' });
      reply.hijack();
      reply.raw.end('done');
    },
  },
  {
    name: 'the cookie is cleared before the session plugin',
    ends: true,
    path: '/before-sessions',
    act: ({ reply }) => {
      void reply.header('Set-Cookie', 'sessionId=; Max-Age=0; Path=/');
    },
  },
  {
    name: 'a cookie of something else is cleared before the session plugin',
    ends: false,
    path: '/before-sessions',
    act: ({ reply }) => {
      void reply.header('Set-Cookie', 'theme=; Max-Age=0; Path=/');
    },
  },
  {
    name: 'Clear-Site-Data clears the cookies',
    ends: true,
    act: ({ reply }) => {
      void reply.header('Clear-Site-Data', '"cache", "cookies"');
    },
  },
  {
    name: 'Clear-Site-Data clears everything before the session plugin',
    ends: true,
    path: '/before-sessions',
    act: ({ reply }) => {
      void reply.header('Clear-Site-Data', '"*"');
    },
  },
  {
    name: 'Clear-Site-Data clears something else',
    ends: false,
    act: ({ reply }) => {
      void reply.header('Clear-Site-Data', '"cache", "storage"');
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
