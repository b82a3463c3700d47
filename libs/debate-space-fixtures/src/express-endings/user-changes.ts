import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FallibleStore } from '../fallible-store.js';
import { logIn } from '../session-host.js';
import { logOut, regenerate, save } from './acts.js';
import type { ExpressEnding } from './ending.js';

/** Another user, or none, has the session afterwards; or the same one again. */
export const userChanges: readonly ExpressEnding[] = [
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
      (store as FallibleStore).fail('set');
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
];
