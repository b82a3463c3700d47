import type { Request } from 'express';
import type { Store } from 'express-session';
import { afterAbort } from './acts.js';
import type { ExpressEnding } from './ending.js';

/** As some hosts do it by hand; missing in the types. */
function generate(request: Request, store: Store): void {
  (store as unknown as { generate(request: Request): void }).generate(request);
}

function withoutSession(request: Request): void {
  Object.assign(request, { session: null });
}

/** The session stays in the store, and its browser no longer has it. */
export const leftBehind: readonly ExpressEnding[] = [
  { name: 'request.session = null with unset: keep', core: true, ends: false, act: withoutSession },
  {
    name: 'delete request.session with unset: keep',
    ends: false,
    act: (request) => {
      Reflect.deleteProperty(request, 'session');
    },
  },
  { name: 'request.session = null with unset: destroy', ends: true, unset: 'destroy', act: withoutSession },
  {
    name: 'delete request.session with unset: destroy',
    ends: true,
    unset: 'destroy',
    act: (request) => {
      Reflect.deleteProperty(request, 'session');
    },
  },
  {
    name: 'the cookie is cleared, and the session left behind',
    core: true,
    ends: true,
    act: (_, response) => {
      response.clearCookie('connect.sid');
    },
  },
  {
    name: 'another session is generated, and the old one left behind',
    ends: true,
    act: (request, _, store) => {
      generate(request, store);
      request.session.user = { uid: 'bob' };
    },
    stacks: ['express-session'],
  },
  {
    name: 'another session is generated for the same user',
    ends: false,
    act: (request, _, store) => {
      generate(request, store);
      request.session.user = { uid: 'alice' };
    },
    stacks: ['express-session'],
  },
  {
    name: 'a cookie of something else is cleared',
    ends: false,
    act: (_, response) => {
      response.clearCookie('theme');
    },
  },
  {
    name: 'the cookie is cleared, and another one names the session',
    ends: true,
    act: (request, response) => {
      response.cookie('last_session', request.sessionID).clearCookie('connect.sid');
    },
  },
  {
    name: 'the cookie is cleared by the head itself',
    ends: true,
    act: (_, response) => {
      response.writeHead(200, { 'Set-Cookie': 'connect.sid=; Max-Age=0; Path=/' });
    },
  },
  {
    name: 'the cookie is cleared before the session middleware',
    ends: true,
    path: '/before-sessions',
    act: (_, response) => {
      response.clearCookie('connect.sid');
    },
  },
  {
    name: 'a cookie of something else is cleared before the session middleware',
    ends: false,
    path: '/before-sessions',
    act: (_, response) => {
      response.clearCookie('theme');
    },
  },
  {
    name: 'Clear-Site-Data clears the cookies',
    core: true,
    ends: true,
    act: (_, response) => {
      response.setHeader('Clear-Site-Data', '"cache", "cookies"');
    },
  },
  {
    name: 'Clear-Site-Data clears everything before the session middleware',
    ends: true,
    path: '/before-sessions',
    act: (_, response) => {
      response.setHeader('Clear-Site-Data', '"*"');
    },
  },
  {
    name: 'Clear-Site-Data clears something else',
    ends: false,
    act: (_, response) => {
      response.setHeader('Clear-Site-Data', '"cache", "storage"');
    },
  },
  {
    name: 'the cookie is cleared, and the client aborted before',
    ends: false,
    aborts: true,
    act: afterAbort((request) => {
      request.res?.clearCookie('connect.sid');
    }),
  },
];
