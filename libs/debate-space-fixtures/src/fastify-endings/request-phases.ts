import { setImmediate as nextTurn } from 'node:timers/promises';
import { closed, destroy, removeUser, type Context, type FastifyEnding } from './ending.js';

/** Before version 11, @fastify/session leaves the old session alive in `regenerate` – for a browser that gets no new cookie. */
const OLD_ONE_LIVES = { nest10: false } as const;

async function streamed(context: Context, act: (context: Context) => Promise<unknown>): Promise<void> {
  context.reply.hijack();
  context.reply.raw.write('first ');
  await act(context);
  context.reply.raw.write('second ');
  await nextTurn();
  context.reply.raw.end('last');
}

/** Where a request is, and how far its response has come, when the session ends. */
export const requestPhases: readonly FastifyEnding[] = [
  { name: 'destroyed in a guard that refuses', ends: true, path: '/act-guarded', act: destroy },
  { name: 'destroyed on a route outside Nest', ends: true, path: '/outside', act: destroy },
  { name: 'destroyed in a hook of a route that is not there', ends: true, path: '/missing', act: destroy },
  {
    name: 'destroyed, answered through the raw response',
    ends: true,
    act: async (context) => {
      await destroy(context);
      context.reply.hijack();
      context.reply.raw.writeHead(204).end();
    },
  },
  { name: 'destroyed while streaming', ends: true, act: (context) => streamed(context, destroy) },
  {
    name: 'regenerated for nobody while streaming',
    ends: true,
    endsOn: OLD_ONE_LIVES,
    act: (context) => streamed(context, ({ session }) => session.regenerate()),
  },
  {
    name: 'destroyed in a handler of server-sent events that stays open',
    ends: true,
    path: '/act-events',
    act: destroy,
  },
  {
    name: 'destroyed after the client aborted',
    ends: true,
    aborts: true,
    act: async (context) => {
      await closed(context.reply);
      await destroy(context);
    },
  },
  {
    name: 'saved after the client aborted',
    ends: false,
    aborts: true,
    act: async ({ reply, session }) => {
      await closed(reply);
      await session.save();
    },
  },
  {
    name: 'passport: logout after the client aborted',
    ends: true,
    endsOn: OLD_ONE_LIVES,
    aborts: true,
    logins: ['passport'],
    act: async ({ reply, request }) => {
      await closed(reply);
      await request.logOut();
    },
  },
  {
    name: 'delete session.user after the client aborted, saved',
    ends: true,
    aborts: true,
    logins: ['session'],
    act: async (context) => {
      await closed(context.reply);
      removeUser(context);
      await context.session.save();
    },
  },
  {
    name: 'destroyed after the response',
    ends: true,
    act: async (context) => {
      context.reply.hijack();
      context.reply.raw.end('done');
      await closed(context.reply);
      await destroy(context);
    },
  },
];
