import { once } from 'node:events';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Request, Response } from 'express';
import type { Store } from 'express-session';
import type { Ending } from './endings.js';
import { FallibleStore } from './fallible-store.js';
import { called, jobs } from './session-jobs.js';
import { logIn, type Act, type SessionStack } from './session-host.js';

/** Of hosts whose sessions run out: long enough for a busy machine to log in. */
export const SHORT_MAX_AGE_MS = 3_000;

export interface ExpressContext {
  readonly request: Request;
  readonly response: Response;
  readonly store: Store;
}

export interface ExpressEnding extends Omit<Ending<ExpressContext>, 'act'> {
  readonly act?: Act;
  /** In place of the act: what happens without any request to the only session that there is. */
  readonly job?: (store: Store, sid: string) => unknown;
  /** Default: all. */
  readonly stacks?: readonly SessionStack[];
  /** Whether the columns have it that differ from another one by where sessions or users are kept. */
  readonly core?: boolean;
  /** Whether it needs `session.expiry`. */
  readonly expires?: boolean;
}

const destroy = (request: Request): Promise<void> => called((done) => request.session.destroy(done));
const regenerate = (request: Request): Promise<void> => called((done) => request.session.regenerate(done));
const save = (request: Request): Promise<void> => called((done) => request.session.save(done));
const logOut = (request: Request, options = {}): Promise<void> =>
  called((done) => {
    request.logout(options, done);
  });
const fail = (store: Store, operation: 'destroy' | 'set'): void => {
  (store as FallibleStore).fail(operation);
};
const swallowed = (promise: Promise<void>): Promise<void> => promise.catch(() => undefined);

/** As some hosts do it by hand; missing in the types. */
function generate(request: Request, store: Store): void {
  (store as unknown as { generate(request: Request): void }).generate(request);
}

function withoutSession(request: Request): void {
  Object.assign(request, { session: null });
}

async function streaming(request: Request, response: Response): Promise<void> {
  response.write('first ');
  await destroy(request);
  response.write('second ');
  await nextTurn();
  response.end('last');
}

const afterAbort =
  (act: (request: Request) => void | Promise<void>): Act =>
  async (request, response) => {
    await once(response, 'close');
    await act(request);
  };
const afterResponse =
  (act: (request: Request) => Promise<void>): Act =>
  async (request, response) => {
    response.end('done');
    await once(response, 'close');
    await act(request);
  };
const expiring = (request: Request, ms: number): void => {
  request.session.cookie.maxAge = ms;
};
const renewed = async (request: Request): Promise<void> => {
  await regenerate(request);
  await logIn(request, 'alice');
  await save(request);
};

/** The Express table of session-endings.md. */
export const expressEndings: readonly ExpressEnding[] = [
  { name: 'session.destroy with a callback', core: true, ends: true, act: destroy },
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
      await destroy(request);
      throw new Error('after the end');
    },
  },
  {
    name: 'session.destroy twice',
    ends: true,
    act: async (request) => {
      const { session } = request;
      await destroy(request);
      await called((done) => session.destroy(done));
    },
  },
  {
    name: 'a destroy that fails in the store',
    ends: false,
    act: (request, _, store) => {
      fail(store, 'destroy');
      return swallowed(destroy(request));
    },
  },
  { name: 'regenerate, and nobody logs in again', core: true, ends: true, act: regenerate },
  {
    name: 'regenerate, and another user logs in',
    core: true,
    ends: true,
    act: async (request) => {
      await regenerate(request);
      await logIn(request, 'bob');
    },
  },
  {
    name: 'regenerate, and the same user logs in',
    core: true,
    ends: false,
    act: async (request) => {
      await regenerate(request);
      await logIn(request, 'alice');
    },
  },
  {
    name: 'regenerate, and the same user logs in some time later',
    ends: false,
    act: async (request) => {
      await regenerate(request);
      for (let turn = 0; turn < 20; turn += 1) await nextTurn();
      await logIn(request, 'alice');
    },
  },
  { name: 'logging in again as the same user', ends: false, act: (request) => logIn(request, 'alice') },
  {
    name: 'passport: logIn of another user',
    ends: true,
    stacks: ['passport'],
    act: (request) => logIn(request, 'bob'),
  },
  {
    name: 'passport: logout',
    core: true,
    ends: true,
    stacks: ['passport'],
    act: (request) => logOut(request),
  },
  {
    name: 'passport: logout with keepSessionInfo',
    ends: true,
    stacks: ['passport'],
    act: (request) => logOut(request, { keepSessionInfo: true }),
  },
  {
    name: 'passport: logout, and the same user logs in',
    ends: false,
    stacks: ['passport'],
    act: async (request) => {
      await logOut(request);
      await logIn(request, 'alice');
    },
  },
  {
    name: 'delete session.user',
    core: true,
    ends: true,
    stacks: ['express-session'],
    act: (request) => {
      delete request.session.user;
    },
  },
  {
    name: 'delete session.user, saved immediately',
    ends: true,
    stacks: ['express-session'],
    act: (request) => {
      delete request.session.user;
      return save(request);
    },
  },
  {
    name: 'delete session.user, and the save fails',
    ends: false,
    stacks: ['express-session'],
    act: (request, _, store) => {
      fail(store, 'set');
      delete request.session.user;
    },
  },
  {
    name: 'delete session.user, saved, and set again',
    ends: false,
    stacks: ['express-session'],
    act: async (request) => {
      delete request.session.user;
      await save(request);
      request.session.user = { uid: 'alice' };
    },
  },
  {
    name: 'session.user overwritten with another user',
    core: true,
    ends: true,
    stacks: ['express-session'],
    act: (request) => logIn(request, 'bob'),
  },
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
    name: 'the cookie is cleared, and the client aborted before',
    ends: false,
    aborts: true,
    act: afterAbort((request) => {
      request.res?.clearCookie('connect.sid');
    }),
  },
  { name: 'destroyed in a guard that refuses', core: true, ends: true, path: '/act-guarded', act: destroy },
  {
    name: 'destroyed in plain middleware outside Nest',
    core: true,
    ends: true,
    path: '/outside',
    act: destroy,
  },
  {
    name: 'destroyed, answered through the raw response',
    ends: true,
    act: async (request, response) => {
      await destroy(request);
      response.writeHead(204).end();
    },
  },
  { name: 'destroyed while streaming', core: true, ends: true, act: streaming },
  {
    name: 'destroyed in a handler of server-sent events that stays open',
    core: true,
    ends: true,
    path: '/act-events',
    act: destroy,
  },
  {
    name: 'destroyed after the client aborted',
    core: true,
    ends: true,
    aborts: true,
    act: afterAbort(destroy),
  },
  { name: 'saved after the client aborted', ends: false, aborts: true, act: afterAbort(save) },
  { name: 'regenerated after the client aborted', ends: true, aborts: true, act: afterAbort(regenerate) },
  {
    name: 'regenerated for the same user after the client aborted, who never gets the cookie',
    ends: true,
    aborts: true,
    act: afterAbort(renewed),
  },
  {
    name: 'regenerated before the client aborted, and for the same user after it',
    ends: true,
    aborts: true,
    act: async (request, response) => {
      const closed = once(response, 'close');
      await regenerate(request);
      await closed;
      await logIn(request, 'alice');
    },
  },
  {
    name: 'passport: logout after the client aborted',
    ends: true,
    aborts: true,
    stacks: ['passport'],
    act: afterAbort(logOut),
  },
  {
    name: 'delete session.user after the client aborted',
    ends: true,
    aborts: true,
    stacks: ['express-session'],
    act: afterAbort((request) => {
      delete request.session.user;
    }),
  },
  { name: 'destroyed after the response', core: true, ends: true, act: afterResponse(destroy) },
  {
    name: 'passport: logout after the response',
    ends: true,
    stacks: ['passport'],
    act: afterResponse(logOut),
  },
  {
    name: 'regenerated for the same user when the cookies have left',
    ends: true,
    act: async (request, response) => {
      response.write('first ');
      await renewed(request);
    },
  },
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
  {
    name: 'the session runs out and is found expired at the next request',
    ends: true,
    path: 'job',
    expires: true,
    job: () => pause(SHORT_MAX_AGE_MS + 100),
  },
  {
    name: 'session.cookie.maxAge = 0',
    ends: true,
    act: (request) => {
      expiring(request, 0);
    },
  },
  {
    name: 'session.cookie.maxAge = 0, saved',
    core: true,
    ends: true,
    act: (request) => {
      expiring(request, 0);
      return save(request);
    },
  },
  {
    name: 'session.cookie.maxAge = 0, saved, and the session destroyed',
    ends: true,
    act: async (request) => {
      expiring(request, 0);
      await save(request);
      await destroy(request);
    },
  },
  {
    name: 'session.cookie.expires in the past, saved',
    ends: true,
    act: (request) => {
      Object.assign(request.session.cookie, { expires: new Date(0) });
      return save(request);
    },
  },
  {
    name: 'session.cookie.maxAge = 0, saved, and then a longer one, saved',
    ends: false,
    act: async (request) => {
      expiring(request, 0);
      await save(request);
      expiring(request, 60_000);
      await save(request);
    },
  },
  {
    name: 'a longer session.cookie.maxAge, saved',
    ends: false,
    act: (request) => {
      expiring(request, 60_000);
      return save(request);
    },
  },
  { name: 'store.clear', ends: true, act: (_, __, store) => called((done) => store.clear?.(done)) },
  {
    name: 'touch',
    core: true,
    ends: false,
    act: (request) => {
      request.session.touch();
    },
  },
  { name: 'reload', ends: false, act: (request) => called((done) => request.session.reload(done)) },
  { name: 'an ordinary save', core: true, ends: false, act: (request) => save(request) },
  {
    name: 'a change of something else',
    core: true,
    ends: false,
    act: (request) => {
      Object.assign(request.session, { basket: 3 });
    },
  },
  {
    name: 'a handler that throws',
    ends: false,
    act: () => {
      throw new Error('nothing to do with sessions');
    },
  },
];
