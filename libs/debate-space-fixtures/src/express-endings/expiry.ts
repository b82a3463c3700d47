import { setTimeout as pause } from 'node:timers/promises';
import type { Request } from 'express';
import { destroySession } from '../session-jobs.js';
import { save } from './acts.js';
import { SHORT_MAX_AGE_MS, type ExpressEnding } from './ending.js';

const expiring = (request: Request, ms: number): void => {
  request.session.cookie.maxAge = ms;
};

/** The session has expired, or expires at another time. */
export const expiry: readonly ExpressEnding[] = [
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
      await destroySession(request);
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
];
