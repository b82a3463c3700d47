import type { FastifyEnding, FastifyStore } from './ending.js';
import { ownRows } from './own-rows.js';

/** As if its time had come: not by a method of the store. */
function runOut(store: FastifyStore, sid: string): void {
  const session = ownRows(store).get(sid);
  if (session) session.cookie.expires = new Date(Date.now() - 1_000);
}

/** The session has expired, or expires at another time. */
export const expiry: readonly FastifyEnding[] = [
  {
    name: 'the session runs out and is found expired at the next request',
    ends: true,
    path: 'job',
    needs: 'own store',
    job: runOut,
  },
  {
    name: 'session.cookie.maxAge = 0, saved',
    ends: true,
    act: ({ session }) => {
      session.cookie.maxAge = 0;
      return session.save();
    },
  },
  {
    name: 'session.cookie.expires in the past, saved',
    ends: true,
    act: ({ session }) => {
      session.cookie.expires = new Date(0);
      return session.save();
    },
  },
  {
    name: 'a longer session.cookie.maxAge, saved',
    ends: false,
    act: ({ session }) => {
      session.cookie.maxAge = 60_000;
      return session.save();
    },
  },
];
