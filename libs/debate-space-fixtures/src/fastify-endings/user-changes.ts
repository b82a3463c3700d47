import { setImmediate as nextTurn } from 'node:timers/promises';
import { removeUser, sessionOf, type FastifyEnding } from './ending.js';

/** Another user, or none, has the session afterwards; or the same one again. */
export const userChanges: readonly FastifyEnding[] = [
  { name: 'regenerate, and nobody logs in again', ends: true, act: ({ session }) => session.regenerate() },
  {
    name: 'regenerate, and another user logs in',
    ends: true,
    act: async ({ session, logIn }) => {
      await session.regenerate();
      await logIn('bob');
    },
  },
  {
    name: 'regenerate, and the same user logs in',
    ends: false,
    act: async ({ session, logIn }) => {
      await session.regenerate();
      await logIn('alice');
    },
  },
  {
    name: 'regenerate, and the same user logs in some time later',
    ends: false,
    act: async ({ session, logIn }) => {
      await session.regenerate();
      for (let turn = 0; turn < 20; turn += 1) await nextTurn();
      await logIn('alice');
    },
  },
  {
    name: 'regenerate that keeps the user',
    ends: false,
    logins: ['session'],
    act: async ({ session, request }) => {
      await session.regenerate(['user']);
      await sessionOf(request).save();
    },
  },
  { name: 'logging in again as the same user', ends: false, act: ({ logIn }) => logIn('alice') },
  {
    name: 'passport: logIn of another user',
    ends: true,
    logins: ['passport'],
    act: ({ logIn }) => logIn('bob'),
  },
  { name: 'passport: logout', ends: true, logins: ['passport'], act: ({ request }) => request.logOut() },
  {
    name: 'passport: logout, and the same user logs in',
    ends: false,
    logins: ['passport'],
    act: async ({ request, logIn }) => {
      await request.logOut();
      await logIn('alice');
    },
  },
  { name: 'delete session.user', ends: true, logins: ['session'], act: removeUser },
  {
    name: 'delete session.user, saved immediately',
    ends: true,
    logins: ['session'],
    act: (context) => {
      removeUser(context);
      return context.session.save();
    },
  },
  {
    name: 'delete session.user, and the save fails',
    ends: false,
    fails: true,
    logins: ['session'],
    act: (context) => {
      context.store.fail?.('set', 10);
      removeUser(context);
    },
  },
  {
    name: 'delete session.user, and the save fails, but not the one with the error page',
    ends: true,
    fails: true,
    logins: ['session'],
    act: (context) => {
      context.store.fail?.('set', 1);
      removeUser(context);
    },
  },
  {
    name: 'delete session.user, saved, and set again',
    ends: false,
    logins: ['session'],
    act: async (context) => {
      removeUser(context);
      await context.session.save();
      context.session.user = { uid: 'alice' };
    },
  },
  {
    name: 'session.user overwritten with another user',
    ends: true,
    logins: ['session'],
    act: ({ session }) => {
      session.user = { uid: 'bob' };
    },
  },
];
