import { once } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { logIn, type Act } from '../session-host.js';
import { destroySession } from '../session-jobs.js';
import { afterAbort, logOut, regenerate, save } from './acts.js';
import type { ExpressEnding } from './ending.js';

async function streaming(request: Request, response: Response): Promise<void> {
  response.write('first ');
  await destroySession(request);
  response.write('second ');
  await nextTurn();
  response.end('last');
}

const afterResponse =
  (act: (request: Request) => Promise<void>): Act =>
  async (request, response) => {
    response.end('done');
    await once(response, 'close');
    await act(request);
  };

async function renewed(request: Request): Promise<void> {
  await regenerate(request);
  await logIn(request, 'alice');
  await save(request);
}

/** Where a request is, and how far its response has come, when the session ends. */
export const requestPhases: readonly ExpressEnding[] = [
  {
    name: 'destroyed in a guard that refuses',
    core: true,
    ends: true,
    path: '/act-guarded',
    act: destroySession,
  },
  {
    name: 'destroyed in plain middleware outside Nest',
    core: true,
    ends: true,
    path: '/outside',
    act: destroySession,
  },
  {
    name: 'destroyed, answered through the raw response',
    ends: true,
    act: async (request, response) => {
      await destroySession(request);
      response.writeHead(204).end();
    },
  },
  { name: 'destroyed while streaming', core: true, ends: true, act: streaming },
  {
    name: 'destroyed in a handler of server-sent events that stays open',
    core: true,
    ends: true,
    path: '/act-events',
    act: destroySession,
  },
  {
    name: 'destroyed after the client aborted',
    core: true,
    ends: true,
    aborts: true,
    act: afterAbort(destroySession),
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
  { name: 'destroyed after the response', core: true, ends: true, act: afterResponse(destroySession) },
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
];
