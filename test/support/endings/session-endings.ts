import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { called, jobs } from '../hosts/session-jobs.js';
import type { Handling } from './handling.js';
import {
  aborts,
  core,
  destroy,
  ends,
  later,
  nothing,
  oddCookies,
  onExpress,
  onFastify,
  removeUser,
  removeUserAndSave,
  renew,
  SHORT_MAX_AGE_MS,
  stays,
  withoutPassport,
  withPassport,
  type Act,
  type Row,
} from './rows.js';

const ofExpress = ({ express }: Handling): NonNullable<Handling['express']> => {
  if (!express) throw new Error('a row of Express');
  return express;
};
const ofFastify = ({ fastify }: Handling): NonNullable<Handling['fastify']> => {
  if (!fastify) throw new Error('a row of Fastify');
  return fastify;
};

/** A handler destroys the session. */
const destroyed: readonly Row[] = [
  ends('session.destroy', destroy, core),
  ends('session.destroy beside odd cookies', destroy, { cookies: oddCookies }),
  ends(
    'session.destroy without a callback',
    (handler) => {
      handler.destroyBlindly();
    },
    { ...later, ...onExpress },
  ),
  ends(
    'session.destroy with a callback',
    ({ session }) =>
      called((done) => {
        (session as unknown as { destroy(done: () => void): void }).destroy(done);
      }),
    onFastify,
  ),
  ends('session.destroy, and then the handler throws', async (handler) => {
    await handler.destroy();
    throw new Error('after the end');
  }),
  ends('session.destroy twice', async (handler) => {
    const { session } = handler;
    await handler.destroy(session);
    await handler.destroy(session);
  }),
  stays(
    'a destroy that fails in the store',
    (handler) => {
      handler.store.fail?.('destroy');
      return handler.destroy().catch(nothing);
    },
    { fails: true },
  ),
];

/** Another user, or none, has the session afterwards; or the same one again. */
const userChanges: readonly Row[] = [
  ends('regenerate, and nobody logs in again', (handler) => handler.regenerate(), {
    ...core,
    laterOn: 'nest10',
  }),
  ends(
    'regenerate, and another user logs in',
    async (handler) => {
      await handler.regenerate();
      await handler.logIn('bob');
    },
    { ...core, laterOn: 'nest10' },
  ),
  stays('regenerate, and the same user logs in', renew, core),
  stays('regenerate, and the same user logs in some time later', async (handler) => {
    await handler.regenerate();
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    await handler.logIn('alice');
  }),
  stays(
    'regenerate that keeps the user',
    async (handler) => {
      await handler.regenerate(['user']);
      await handler.save();
    },
    { ...onFastify, ...withoutPassport },
  ),
  stays('logging in again as the same user', (handler) => handler.logIn('alice')),
  ends('passport: logIn of another user', (handler) => handler.logIn('bob'), withPassport),
  ends('passport: logout', (handler) => handler.logOut(), { ...core, laterOn: 'nest10', ...withPassport }),
  ends('passport: logout with keepSessionInfo', (handler) => handler.logOut({ keepSessionInfo: true }), {
    ...onExpress,
    ...withPassport,
  }),
  stays(
    'passport: logout, and the same user logs in',
    async (handler) => {
      await handler.logOut();
      await handler.logIn('alice');
    },
    withPassport,
  ),
  ends('delete session.user', removeUser, { ...core, ...withoutPassport }),
  ends('delete session.user, saved immediately', removeUserAndSave, withoutPassport),
  stays(
    'delete session.user, and the save fails',
    (handler) => {
      handler.store.fail?.('set', 10);
      removeUser(handler);
    },
    { fails: true, ...withoutPassport },
  ),
  ends(
    'delete session.user, and the save fails, but not the one with the error page',
    (handler) => {
      handler.store.fail?.('set', 1);
      removeUser(handler);
    },
    { fails: true, ...onFastify, ...withoutPassport },
  ),
  stays(
    'delete session.user, saved, and set again',
    async (handler) => {
      await removeUserAndSave(handler);
      await handler.logIn('alice');
    },
    withoutPassport,
  ),
  ends('session.user overwritten with another user', (handler) => handler.logIn('bob'), {
    ...core,
    ...withoutPassport,
  }),
];

/** As some hosts do it by hand; missing in the types. */
const generate = (handler: Handling): void => {
  const { request } = ofExpress(handler);
  (request.sessionStore as unknown as { generate(request: object): void }).generate(request);
};
const deleteSession: Act = (handler) => Reflect.deleteProperty(ofExpress(handler).request, 'session');
const cleared = ({ cookieName }: Handling): string => `${cookieName}=; Max-Age=0; Path=/`;
const BEFORE = { path: '/before-sessions' } as const;

/** The session stays in the store, and its browser no longer has it. */
const leftBehind: readonly Row[] = [
  stays(
    'request.session = null with unset: keep',
    (handler) => {
      handler.drop();
    },
    core,
  ),
  stays('delete request.session with unset: keep', deleteSession, onExpress),
  ends(
    'request.session = null with unset: destroy',
    (handler) => {
      handler.drop();
    },
    { unset: 'destroy', ...onExpress },
  ),
  ends('delete request.session with unset: destroy', deleteSession, { unset: 'destroy', ...onExpress }),
  ends(
    'the cookie is cleared, and the session left behind',
    (handler) => {
      handler.clearCookie();
    },
    { ...core, ...later },
  ),
  stays('the cookie is set again at another path, and then cleared at that one', (handler) => {
    const { cookieName } = handler;
    handler.header('Set-Cookie', `${cookieName}=another; Path=/elsewhere`);
    handler.clearCookie('elsewhere');
  }),
  ends(
    'the cookie is cleared, and another one names the session',
    (handler) => {
      handler.setCookie('last_session', handler.sid);
      handler.clearCookie();
    },
    later,
  ),
  ends(
    'the cookie is cleared by the head itself',
    (handler) => {
      handler.hijack();
      handler.raw.writeHead(200, { 'Set-Cookie': cleared(handler) }).end('done');
    },
    later,
  ),
  stays(
    'the cookie is cleared, and a hijacked reply does not say so',
    (handler) => {
      void ofFastify(handler).reply.clearCookie('sessionId', { path: '/' });
      handler.hijack();
      handler.raw.end('done');
    },
    onFastify,
  ),
  ends(
    'another session is generated, and the old one left behind',
    (handler) => {
      generate(handler);
      return handler.logIn('bob');
    },
    { ...later, ...onExpress, ...withoutPassport },
  ),
  stays(
    'another session is generated for the same user',
    (handler) => {
      generate(handler);
      return handler.logIn('alice');
    },
    { ...onExpress, ...withoutPassport },
  ),
  stays('a cookie of something else is cleared', (handler) => {
    handler.clearCookie('theme');
  }),
  ends(
    'the cookie is cleared before the session middleware',
    (handler) => {
      handler.header('Set-Cookie', cleared(handler));
    },
    { ...BEFORE, ...later },
  ),
  stays(
    'a cookie of something else is cleared before the session middleware',
    (handler) => {
      handler.header('Set-Cookie', 'theme=; Max-Age=0; Path=/');
    },
    BEFORE,
  ),
  stays('a cookie of the same name and another path is cleared', (handler) => {
    handler.header('Set-Cookie', `${cleared(handler)}act`);
  }),
  stays(
    'a cookie of the same name and another path is cleared before the session middleware',
    (handler) => {
      handler.header('Set-Cookie', `${cleared(handler)}before-sessions`);
    },
    BEFORE,
  ),
  ends(
    'Clear-Site-Data clears the cookies',
    (handler) => {
      handler.header('Clear-Site-Data', '"cache", "cookies"');
    },
    { ...core, ...later },
  ),
  ends(
    'Clear-Site-Data clears everything before the session middleware',
    (handler) => {
      handler.header('Clear-Site-Data', '"*"');
    },
    { ...BEFORE, ...later },
  ),
  stays('Clear-Site-Data clears something else', (handler) => {
    handler.header('Clear-Site-Data', '"cache", "storage"');
  }),
  stays(
    'the cookie is cleared, and the client aborted before',
    async (handler) => {
      await handler.closed();
      handler.clearCookie();
    },
    { ...aborts, ...onExpress },
  ),
];

const afterAbort =
  (act: Act): Act =>
  async (handler) => {
    await handler.closed();
    await act(handler);
  };
const afterResponse =
  (act: Act): Act =>
  async (handler) => {
    const closed = handler.closed();
    handler.hijack();
    handler.raw.end('done');
    await closed;
    await act(handler);
  };
const streaming =
  (act: Act): Act =>
  async (handler) => {
    handler.hijack();
    handler.raw.write('first ');
    await act(handler);
    handler.raw.write('second ');
    await nextTurn();
    handler.raw.end('last');
  };
const renewAndSave: Act = async (handler) => {
  await renew(handler);
  await handler.save();
};
const regenerate: Act = (handler) => handler.regenerate();
const logOut: Act = (handler) => handler.logOut();
/** Before version 11, @fastify/session leaves the old session alive in `regenerate` – for a browser that gets no new cookie. */
const oldOneLives = { endsOn: { nest10: false }, laterOn: 'nest10' } as const;

/** Where a request is, and how far its response has come, when the session ends. */
const requestPhases: readonly Row[] = [
  ends('destroyed in a guard that refuses', destroy, { ...core, path: '/act-guarded' }),
  ends('destroyed outside Nest', destroy, { ...core, path: '/outside' }),
  ends('destroyed in a hook of a route that is not there', destroy, { ...onFastify, path: '/missing' }),
  ends('destroyed, answered through the raw response', async (handler) => {
    await handler.destroy();
    handler.hijack();
    handler.raw.writeHead(204).end();
  }),
  ends('destroyed while streaming', streaming(destroy), core),
  ends('regenerated for nobody while streaming', streaming(regenerate), { ...oldOneLives, ...onFastify }),
  ends('destroyed in a handler of server-sent events that stays open', destroy, {
    ...core,
    path: '/act-events',
  }),
  ends('destroyed after the client aborted', afterAbort(destroy), { ...core, ...aborts }),
  stays(
    'saved after the client aborted',
    afterAbort((handler) => handler.save()),
    aborts,
  ),
  ends('regenerated after the client aborted', afterAbort(regenerate), { ...aborts, ...onExpress }),
  ends(
    'regenerated for the same user after the client aborted, who never gets the cookie',
    afterAbort(renewAndSave),
    { ...aborts, ...onExpress },
  ),
  ends(
    'regenerated before the client aborted, and for the same user after it',
    async (handler) => {
      const closed = handler.closed();
      await handler.regenerate();
      await closed;
      await handler.logIn('alice');
    },
    { ...aborts, ...onExpress },
  ),
  ends('passport: logout after the client aborted', afterAbort(logOut), {
    ...aborts,
    ...onExpress,
    ...withPassport,
  }),
  ends('passport: logout after the client aborted', afterAbort(logOut), {
    ...aborts,
    ...oldOneLives,
    ...onFastify,
    ...withPassport,
  }),
  ends('delete session.user after the client aborted', afterAbort(removeUser), {
    ...aborts,
    ...onExpress,
    ...withoutPassport,
  }),
  ends('delete session.user after the client aborted, saved', afterAbort(removeUserAndSave), {
    ...aborts,
    ...withoutPassport,
  }),
  ends('destroyed after the response', afterResponse(destroy), { ...core, ...later }),
  ends('passport: logout after the response', afterResponse(logOut), {
    ...later,
    ...onExpress,
    ...withPassport,
  }),
  ends(
    'regenerated for the same user when the cookies have left',
    async (handler) => {
      handler.raw.write('first ');
      await renewAndSave(handler);
    },
    { ...later, ...onExpress },
  ),
];

const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const;

/** The host has hooks of its own on Fastify, behind those of the session plugin. */
const hooks: readonly Row[] = [
  ...HOOKS.flatMap((hook) => [
    ends(`destroyed in the hook ${hook}`, destroy, { ...onFastify, path: `/act?in=${hook}` }),
    stays(`renewed in the hook ${hook}`, renew, { ...onFastify, path: `/act?in=${hook}` }),
    ends(`destroyed in the hook ${hook}, which answers`, destroy, {
      ...onFastify,
      path: `/act?in=${hook}&answers`,
    }),
    stays(`renewed in the hook ${hook}, which answers`, renew, {
      ...onFastify,
      path: `/act?in=${hook}&answers`,
    }),
    ends(`the user is removed in the hook ${hook}, saved`, removeUserAndSave, {
      ...onFastify,
      ...withoutPassport,
      path: `/act?in=${hook}`,
    }),
  ]),
  ends('destroyed in the hook onSend', destroy, { ...onFastify, path: '/act?in=onSend' }),
  ends('destroyed in the hook onResponse', destroy, { ...onFastify, ...later, path: '/act?in=onResponse' }),
];

const clear = ({ store }: Handling): Promise<void> => called((done) => store.clear?.(done));

/** The store is called without any session of a request, or for the session of another browser. */
const byStore: readonly Row[] = [
  ends(
    'store.destroy with no request',
    async ({ sid, store }) => {
      setImmediate(() => {
        store.destroy(sid);
      });
      await nextTurn();
      await nextTurn();
    },
    { ...later, ...onExpress },
  ),
  ends(
    'store.destroy with no request',
    async (handler) => {
      const { sid, store } = handler;
      handler.drop();
      await called((done) => {
        setImmediate(() => {
          store.destroy(sid, done);
        });
      });
    },
    { ...later, ...onFastify },
  ),
  ends(
    'store.destroy of its own session',
    ({ sid, store }) =>
      called((done) => {
        store.destroy(sid, done);
      }),
    { ...later, ...onExpress },
  ),
  ends('store.destroy by a job', nothing, { ...core, path: 'job', job: jobs.destroy }),
  ends('the user is removed by a job', nothing, {
    path: 'job',
    fails: true,
    ...withoutPassport,
    job: jobs.removeUser,
  }),
  ends('store.clear by a job', nothing, { ...core, path: 'job', fails: true, job: jobs.clear }),
  ends('store.clear', clear, { ...later, ...onExpress }),
  ends(
    'store.clear',
    (handler) => {
      handler.drop();
      return clear(handler);
    },
    { fails: true, ...later, ...onFastify },
  ),
  ...['bob', 'alice'].flatMap((whose) => {
    const reports = { others: [whose], reports: [whose], later: true };
    const of = whose === 'alice' ? 'another session of the same user' : 'the session of another user';
    const change =
      (user?: string): Act =>
      async ({ store, others: [other = ''] }) =>
        user === undefined ? jobs.removeUser(store, other) : jobs.replaceUser(store, other, user);
    return [
      stays(
        `${of} is destroyed at the store`,
        ({ store, others: [other = ''] }) => jobs.destroy(store, other),
        { ...core, ...reports },
      ),
      ends(
        `${of} is destroyed at the store, and then its own`,
        async (handler) => {
          await jobs.destroy(handler.store, handler.others[0] ?? '');
          await handler.destroy();
        },
        { ...reports, reports: [...new Set(['alice', whose])] },
      ),
      stays(`the user of ${of} is removed at the store`, change(), {
        ...reports,
        fails: true,
        ...withoutPassport,
      }),
      stays(`the user of ${of} is replaced at the store`, change('carol'), {
        ...reports,
        fails: true,
        ...withoutPassport,
      }),
    ] as const;
  }),
];

const expiring = ({ session }: Handling, ms: number): void => {
  Object.assign(session.cookie, { maxAge: ms });
};
const expired: Act = (handler) => {
  expiring(handler, 0);
  return handler.save();
};

/** The session has expired, or expires at another time. */
const expiry: readonly Row[] = [
  ends('the session runs out and is found expired at the next request', nothing, {
    path: 'job',
    needs: 'expiry',
    job: () => pause(SHORT_MAX_AGE_MS + 100),
  }),
  ends('the session runs out and is found expired at the next request', nothing, {
    ...onFastify,
    path: 'job',
    needs: 'own store',
    // As if its time had come: not by a method of the store.
    job: (store, sid) => {
      const { session } = {
        session: (Reflect.get(store, 'store') as Map<string, Handling['session']>).get(sid),
      };
      Object.assign(session?.cookie ?? {}, { expires: new Date(Date.now() - 1_000) });
    },
  }),
  ends(
    'session.cookie.maxAge = 0',
    (handler) => {
      expiring(handler, 0);
    },
    onExpress,
  ),
  ends('session.cookie.maxAge = 0, saved', expired, core),
  ends('session.cookie.maxAge = 1', (handler) => {
    expiring(handler, 1);
  }),
  ends(
    'session.options of a maxAge of 1',
    ({ session }) => {
      (session as unknown as { options(options: object): void }).options({ maxAge: 1 });
    },
    { ...onFastify, endsOn: { nest10: false }, laterOn: 'nest10' }, // @fastify/session 10 has no such method
  ),
  ends(
    'session.cookie.maxAge = 0, saved, and the session destroyed',
    async (handler) => {
      await expired(handler);
      await handler.destroy();
    },
    onExpress,
  ),
  ends('session.cookie.expires in the past, saved', (handler) => {
    Object.assign(handler.session.cookie, { expires: new Date(0) });
    return handler.save();
  }),
  stays(
    'session.cookie.maxAge = 0, saved, and then a longer one, saved',
    async (handler) => {
      await expired(handler);
      expiring(handler, 60_000);
      await handler.save();
    },
    onExpress,
  ),
  stays('a longer session.cookie.maxAge, saved', (handler) => {
    expiring(handler, 60_000);
    return handler.save();
  }),
];

/** The session stays as it is. */
const lookAlikes: readonly Row[] = [
  stays(
    'touch',
    ({ session }) => {
      session.touch();
    },
    core,
  ),
  stays('reload', (handler) => handler.reload()),
  stays('an ordinary save', (handler) => handler.save(), core),
  stays('a change of something else', ({ session }) => Object.assign(session, { basket: 3 }), core),
  stays('a handler that throws', () => {
    throw new Error('nothing to do with sessions');
  }),
];

/** The table of session-endings.md, of sessions in a store. */
export const sessionEndings: readonly Row[] = [
  ...destroyed,
  ...userChanges,
  ...leftBehind,
  ...requestPhases,
  ...hooks,
  ...byStore,
  ...expiry,
  ...lookAlikes,
];
