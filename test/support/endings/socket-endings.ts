import type { Request } from 'express';
import type { Store } from 'express-session';
import type { Browser } from '../browser/browser.js';
import type { Ending } from './endings.js';
import { logIn } from '../hosts/session-host.js';
import { called, destroySession, jobs } from '../hosts/session-jobs.js';

/** What a handler of a socket has: the request by which the socket came, with its session. */
export interface SocketContext {
  readonly request: Request;
  readonly store: Store;
  readonly browser: Browser;
  /** Closes the socket from the client, and waits until the server has seen it. */
  readonly disconnect: () => Promise<void>;
}

export interface SocketEnding extends Omit<Ending<SocketContext>, 'path'> {
  /** In place of a handler: what happens to the session afterwards, when nothing but the socket is open. */
  readonly job?: (store: Store, sid: string) => unknown;
}

const destroy = ({ request }: SocketContext): Promise<void> => destroySession(request);
const regenerate = (request: Request): Promise<void> => called((done) => request.session.regenerate(done));
const save = (request: Request): Promise<void> => called((done) => request.session.save(done));
const reload = (request: Request): Promise<void> => called((done) => request.session.reload(done));
const nothing = (): void => undefined;

/** What a handler of a socket does to its session. */
export const socketEndings: readonly SocketEnding[] = [
  { name: 'session.destroy in a handler', ends: true, act: destroy },
  {
    name: 'session.destroy twice in a handler',
    ends: true,
    act: async (context) => {
      const { session } = context.request;
      await destroy(context);
      await called((done) => session.destroy(done));
    },
  },
  {
    name: 'session.destroy in a handler, and then the socket disconnects',
    ends: true,
    act: async (context) => {
      await destroy(context);
      await context.disconnect();
    },
  },
  { name: 'regenerated in a handler', ends: true, act: ({ request }) => regenerate(request) },
  {
    name: 'regenerated for the same user in a handler, whose browser never gets the cookie',
    ends: true,
    act: async (context) => {
      await regenerate(context.request);
      await logIn(context.request, 'alice');
      await save(context.request);
    },
  },
  {
    name: 'delete session.user in a handler, saved',
    ends: true,
    act: async (context) => {
      delete context.request.session.user;
      await save(context.request);
    },
  },
  {
    name: 'session.user overwritten with another user in a handler, saved',
    ends: true,
    act: async (context) => {
      context.request.session.user = { uid: 'bob' };
      await save(context.request);
    },
  },
  {
    name: 'destroyed through HTTP while the socket is open',
    ends: true,
    act: async ({ browser }) => {
      await browser.post('/act');
    },
  },
  {
    name: 'destroyed through HTTP when the socket has disconnected',
    ends: true,
    act: async ({ browser, disconnect }) => {
      await disconnect();
      await browser.post('/act');
    },
  },
  {
    name: 'destroyed in a handler and through HTTP at the same time',
    ends: true,
    isConcurrent: true,
    act: async (context) => {
      await Promise.all([destroy(context), context.browser.post('/act')]);
    },
  },
  {
    name: 'store.destroy in a handler',
    ends: true,
    act: ({ request, store }) => jobs.destroy(store, request.sessionID),
  },
  { name: 'store.destroy by a job while the socket is open', ends: true, act: nothing, job: jobs.destroy },
  { name: 'store.clear by a job while the socket is open', ends: true, act: nothing, job: jobs.clear },
  {
    name: 'the user is removed by a job while the socket is open',
    ends: true,
    act: nothing,
    job: jobs.removeUser,
  },
  { name: 'a handler that leaves the session alone', ends: false, act: nothing },
  { name: 'the socket disconnects', ends: false, act: ({ disconnect }) => disconnect() },
  {
    name: 'touch in a handler, saved',
    ends: false,
    act: (context) => {
      context.request.session.touch();
      return save(context.request);
    },
  },
  { name: 'reload in a handler', ends: false, act: ({ request }) => reload(request) },
  { name: 'an ordinary save in a handler', ends: false, act: ({ request }) => save(request) },
  {
    name: 'saved in a handler when the socket has disconnected',
    ends: false,
    act: async (context) => {
      await context.disconnect();
      await save(context.request);
    },
  },
];
